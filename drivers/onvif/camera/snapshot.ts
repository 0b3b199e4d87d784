/** Takes pictures: the camera names the address (GetSnapshotUri), the host is the configured one. */
import { expectPicture, picture_bytes_max } from '../../../src/device/pictures/picture.ts';
import type { TakePicture } from '../../../src/driver/driver.ts';
import { DeviceUnreachable } from '../../../src/errors.ts';
import { texts } from '../texts.ts';
import {
  call_deadline_ms,
  describe,
  operation,
  reachable,
  type ServiceName,
  type Soap,
} from '../soap/soap.ts';
import { escapeXml, find, textAt } from '../soap/xml.ts';

export interface PictureParts {
  readonly soap: Soap;
  readonly service: ServiceName;
  /** Of the media service. */
  readonly url: string;
  /** Token of the media profile. */
  readonly profile: string;
}

const picture_deadline_ms = call_deadline_ms;

/** How pictures are taken; undefined where the camera reports no address for them. */
export async function pictureOf(parts: PictureParts): Promise<TakePicture | undefined> {
  const first = await snapshotUrl(parts);
  return 'url' in first ? async () => takePicture(parts) : undefined;
}

/** The address is asked for each time: some are valid for a minute only. */
async function takePicture(parts: PictureParts): Promise<Buffer> {
  const found = await snapshotUrl(parts);
  if ('fault' in found) throw new DeviceUnreachable(found.fault);
  const limits = { deadline_ms: picture_deadline_ms, bytes_max: picture_bytes_max };
  const answer = await parts.soap.fetch(found.url, limits);
  if ('kind' in answer) throw new DeviceUnreachable(answer.reason);
  if (answer.status !== 200) throw new DeviceUnreachable(texts.no_picture(answer.status));
  return expectPicture(answer.bytes, answer.type);
}

/** See ONVIF Media Service Specification, section 5.15.1 (ver10), and Media 2, section 5.5 (ver20): GetSnapshotUri. */
async function snapshotUrl({
  soap,
  service,
  url,
  profile,
}: PictureParts): Promise<{ readonly url: string } | { readonly fault: string }> {
  const inner = `<ProfileToken>${escapeXml(profile)}</ProfileToken>`;
  const asked = operation(service, 'GetSnapshotUri', inner);
  const outcome = await soap.call({ ...asked, url });
  if (outcome.kind !== 'reply') return { fault: describe(outcome) };
  const answer = find(outcome.body, 'getSnapshotUriResponse');
  const reported = textAt(answer, 'mediaUri', 'uri') ?? textAt(answer, 'uri') ?? '';
  const found = reported === '' ? undefined : reachable(reported, soap.connection);
  return found === undefined ? { fault: texts.no_picture_address } : { url: found };
}
