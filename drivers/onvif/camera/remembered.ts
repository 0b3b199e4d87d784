/** State of one camera that is kept over restarts. */
import { z } from 'zod';
import { DeviceMemory } from '../../../src/toolkit/device/device-memory.ts';
import { nameRecord } from '../../../src/toolkit/device/device-name.ts';
import { loginRecord } from '../../../src/toolkit/device/login-guard.ts';
import { stateFileName } from '../../../src/toolkit/device/state-file.ts';
import type { FeedSet } from '../../../src/contract/feeds.ts';
import type { DriverHost } from '../../../src/toolkit/driver/driver.ts';
import { type CameraOptions, portOf, sources_max } from '../options.ts';

const cameraMemory = z.object({
  /** Profiles with a pending Stop. */
  owed_stops: z.array(z.string().max(256)).catch([]),
  /** Of the PTZ service, for the pending Stops of a camera whose services are not read yet. */
  ptz_url: z.string().max(2_048).optional(),
  /** Hardware address of the camera that the entry is bound to. */
  mac: z.string().max(32).optional().catch(undefined),
  /** Subscription to its events, which the next start ends unless this one did. */
  subscription: z
    .object({ address: z.string().max(2_048), parameters: z.string().max(16_384) })
    .optional()
    .catch(undefined),
  /** Video sources in the order in which they were first seen: the first one has the key of the device. */
  sources: z.array(z.string().max(256)).max(sources_max).catch([]),
  ...loginRecord,
  ...nameRecord,
  /** How the accepted credentials were sent. */
  login_way: z.enum(['ws_security', 'gateway_clock', 'digest']).optional().catch(undefined),
});
export type CameraMemory = DeviceMemory<typeof cameraMemory>;

export async function openMemory(
  { stateFile, log }: Pick<DriverHost<FeedSet>, 'stateFile' | 'log'>,
  camera: CameraOptions,
): Promise<CameraMemory> {
  const file = stateFileName('camera', `${camera.host.toLowerCase()} ${portOf(camera)} ${camera.path}`);
  return DeviceMemory.open(stateFile(file), cameraMemory, log);
}
