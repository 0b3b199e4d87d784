/** Checks the pictures that cameras send. */
import { CommandRefused, DeviceUnreachable, notSent } from '../../../platform/errors.ts';
import { cleanText } from '../../../platform/foreign-text.ts';
import { texts } from '../texts.ts';
import type { JsonObject } from '../../../contract/json.ts';
import { type Command, defineCommand, noInput } from '../../driver/command.ts';

/** Sub streams give 30 to 150 kB, whole pictures of 4K cameras up to 1.5 MB. */
export const picture_bytes_max = 2_097_152;

/** How a JPEG begins: start of image, then the first byte of a marker (ITU-T T.81, annex B). */
const jpeg_start = Buffer.from([0xff, 0xd8, 0xff]);
/** How it ends; some cameras append a few bytes. */
const jpeg_end = Buffer.from([0xff, 0xd9]);
const behind_end_max = 1_024;
const type_chars_max = 60;

/** Returns the picture; throws `DeviceUnreachable` for anything but a whole JPEG. `type`: as the device calls it. */
export function expectPicture(bytes: Buffer, type: string | undefined): Buffer {
  if (bytes.length > picture_bytes_max) {
    throw new DeviceUnreachable(texts.picture_too_large(picture_bytes_max));
  }
  const isWhole = bytes.lastIndexOf(jpeg_end) >= bytes.length - behind_end_max - jpeg_end.length;
  if (bytes.subarray(0, jpeg_start.length).equals(jpeg_start) && isWhole && bytes.includes(jpeg_end)) {
    return bytes;
  }
  const named = cleanText((type ?? texts.no_type).slice(0, type_chars_max));
  throw new DeviceUnreachable(texts.picture_not_jpeg(named));
}

/** `take` resolves with the result of the task once the picture is kept. It may be repeated: a picture changes nothing. */
export function snapshotCommand(timeout_ms: number, take: () => Promise<JsonObject>): Command {
  return defineCommand({
    name: 'snapshot',
    description: texts.snapshot_command,
    risk_level: 'low',
    timeout_ms,
    repeatable: true,
    input: noInput,
    handle: async (_, { signal }) => {
      if (signal.aborted) throw new CommandRefused(notSent('cancelled'));
      return take();
    },
  });
}
