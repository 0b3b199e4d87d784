/** Takes a picture of one channel: `Snap` of the vendor's HTTP API guide, a GET whose answer is a JPEG or an error as JSON. */
import { randomBytes } from 'node:crypto';
import { expectPicture } from '../../../src/device/pictures/picture.ts';
import type { HttpReply } from '../../../src/device/pinned-http.ts';
import { DeviceUnreachable } from '../../../src/errors.ts';
import { failureOf } from './failure.ts';
import type { Limits } from '../limits.ts';
import { faultIn, readReplies } from './replies.ts';
import type { Fault } from './rsp-codes.ts';
import { texts } from '../texts.ts';

/** `rs` keeps answers out of caches. The sub stream is small enough for slow links. */
export function pictureQuery(channel: number, token: string): string {
  const rs = randomBytes(8).toString('hex');
  return `?cmd=Snap&channel=${channel}&snapType=sub&rs=${rs}&token=${encodeURIComponent(token)}`;
}

/** Returns the picture, or the fault that the device answers; throws `DeviceUnreachable` for anything else. */
export function pictureIn({ status, bytes, text, type }: HttpReply): Buffer | Fault {
  if (status !== 200) throw new DeviceUnreachable(texts.picture_status(status));
  const isError = bytes[0] === '['.charCodeAt(0);
  const fault = isError ? faultIn(readReplies(text)[0]) : undefined;
  return fault ?? expectPicture(bytes, type);
}

/** For the operator. */
export function pictureFailure(fault: Fault, limits: Limits): Error {
  return fault.kind === 'credentials' ? new DeviceUnreachable(fault.sentence) : failureOf(fault, limits);
}
