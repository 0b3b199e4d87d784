/** Why a camera has no stream, pictures or commands: in its own words, as far as it gave some. Its events report theirs (`events.ts`). */
import type { ReportedHealth } from '../../../src/toolkit/driver/driver.ts';
import { fails, type Health, notOffered, works } from '../../../src/toolkit/driver/health.ts';
import type { Device, Source } from './device.ts';
import type { Unread } from './media.ts';
import type { ServiceName } from '../soap/soap.ts';

/** What is missing of this video source. What may pass is asked for again every two minutes. */
export function healthOf(
  device: Pick<Device, 'profiles_unread' | 'unusable'>,
  { stream_unread, stream, still, ptz, takePicture }: Source,
): ReportedHealth {
  const failing = ({ fault, remedy }: Unread): Health =>
    fails(remedy === undefined ? fault : `${fault}; ${remedy}`);
  const profiles = device.profiles_unread && failing(device.profiles_unread);
  const withoutMedia = profiles ?? without(device, ['media', 'media2']);
  const streamFault = stream?.stream_fault ?? null;
  return {
    state: works,
    ...(stream === undefined && {
      stream: stream_unread ? failing(stream_unread) : withoutMedia,
    }),
    ...(streamFault !== null && { stream: fails(streamFault) }),
    ...(takePicture === undefined && { still: still ?? withoutMedia }),
    commands: (ptz === undefined ? profiles : undefined) ?? without(device, ['ptz']),
  };
}

/** Of a service that the camera does not have, or whose address cannot be used. */
function without({ unusable }: Pick<Device, 'unusable'>, services: readonly ServiceName[]): Health {
  const reason = services.map((service) => unusable.get(service)).find((each) => each !== undefined);
  return reason === undefined ? notOffered() : fails(reason);
}
