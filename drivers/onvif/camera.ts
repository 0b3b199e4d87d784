/** One camera: found, served, lost and found again, without touching the others. */
import type { onvifFeeds } from '../../src/contract/feeds.ts';
import type { Command } from '../../src/driver/command.ts';
import type { DriverHost } from '../../src/driver/driver.ts';
import { DeviceRejected, DeviceUnreachable, messageOf } from '../../src/errors.ts';
import { backoff, sleep } from '../../src/platform/time.ts';
import { readPassword } from './credentials.ts';
import { type Device, readDevice } from './device.ts';
import { hear } from './events.ts';
import type { LargeReplies } from './large-replies.ts';
import { type CameraOptions, type OnvifOptions, portOf } from './options.ts';
import { ptzCommands } from './ptz.ts';
import { Served } from './served.ts';
import { type Soap, StalledCamera } from './soap.ts';
import { untilAborted } from './waiting.ts';
import type { Webhook } from './webhook.ts';

export type CameraState =
  | { readonly state: 'trying' | 'online' }
  | { readonly state: 'offline' | 'refused'; readonly reason: string };

export interface CameraParts {
  readonly camera: CameraOptions;
  readonly options: OnvifOptions;
  readonly host: DriverHost<typeof onvifFeeds>;
  readonly large: LargeReplies;
  readonly webhook: Webhook;
  /** Name of the camera that has this key now; only one may. */
  readonly owners: Map<string, string>;
  readonly onState: (state: CameraState) => void;
  /** Told of what must be done before the driver ends: a camera that moves is stopped. */
  readonly stopping: (stop: Promise<unknown>) => void;
  /** Aborts when that is done, or takes too long: nothing is said to a camera from then on. */
  readonly ending: AbortSignal;
}

const retry_first_ms = 1_000;
/** A camera without power costs one attempt a minute. */
const retry_max_ms = 60_000;
/** One whose replies stall us is left alone for longer. */
const stalled_pause_ms = 300_000;
/** A camera that answered for less than this was not back: the pauses go on growing. */
const stable_ms = 30_000;

/** Runs until the host's signal aborts, or until the camera refuses us for good. Never rejects. */
export async function serveCamera(parts: CameraParts): Promise<void> {
  const { camera, options, onState } = parts;
  const { signal, log } = parts.host;
  const served = new Served({
    name: camera.name,
    host: parts.host,
    heartbeat_ms: options.heartbeat_s * 1_000,
    motion_hold_max_ms: options.motion_hold_max_s * 1_000,
    isServed: (asset_key) => parts.owners.has(asset_key),
  });
  let pauses = backoff(retry_first_ms, retry_max_ms);
  let lost_since_ms: number | undefined;
  let line: Soap | undefined;
  /** The stop of a movement may still be on the line before: that is closed only now. */
  const open = async (): Promise<Soap> => {
    line?.close();
    line = await openLine(parts);
    return line;
  };
  const onUp = (): void => {
    if (lost_since_ms !== undefined) {
      const down_s = (performance.now() - lost_since_ms) / 1_000;
      log.info({ camera: camera.name, down_s }, 'camera is back');
    }
    lost_since_ms = undefined;
    onState({ state: 'online' });
  };
  onState({ state: 'trying' });
  while (!signal.aborted) {
    const begin_ms = performance.now();
    const loss = await serveOnce(parts, served, { open, onUp });
    if (signal.aborted) break;
    const reason = messageOf(loss);
    served.lose(reason);
    if (loss instanceof DeviceRejected) {
      log.error({ camera: camera.name, reason }, 'camera cannot be served; waiting for a new configuration');
      onState({ state: 'refused', reason });
      return;
    }
    if (performance.now() - begin_ms > stable_ms) pauses = backoff(retry_first_ms, retry_max_ms);
    const pause_ms = loss instanceof StalledCamera ? stalled_pause_ms : pauses.next().value;
    if (lost_since_ms === undefined) log.warn({ camera: camera.name, reason }, 'camera is unavailable');
    lost_since_ms ??= performance.now();
    onState({ state: 'offline', reason });
    await sleep(pause_ms, signal);
  }
}

/** One connection, from the first question to the loss; answers with the loss. */
async function serveOnce(
  parts: CameraParts,
  served: Served,
  { open, onUp }: { readonly open: () => Promise<Soap>; readonly onUp: () => void },
): Promise<unknown> {
  const { host, camera, options, owners } = parts;
  const over = new AbortController();
  const onAbort = (): void => over.abort();
  host.signal.addEventListener('abort', onAbort, { once: true });
  let key: string | undefined;
  try {
    const soap = await open();
    const device = await untilAborted(readDevice(soap, camera), host.signal);
    if (!device) return undefined;
    claim(owners, device.asset_key, camera.name);
    key = device.asset_key;
    const motion = served.begin(device, commandsOf(parts, device, soap, over.signal), over.signal);
    onUp();
    const { signal } = over;
    await hear({ ...parts, log: host.log, pull_s: options.pull_s, soap, device, motion, signal });
    return undefined;
  } catch (error) {
    return error;
  } finally {
    over.abort();
    host.signal.removeEventListener('abort', onAbort);
    if (key !== undefined) owners.delete(key);
  }
}

/** npm onvif is loaded for the first camera that is served, not for a look at the configuration. */
async function openLine({ camera, large, ending }: CameraParts): Promise<Soap> {
  const { openLine: open } = await import('./line.ts');
  const password = camera.password_file === undefined ? undefined : await readPassword(camera.password_file);
  const connection = {
    host: camera.host,
    port: portOf(camera),
    path: camera.path,
    secure: camera.tls !== undefined,
    fingerprint: camera.tls?.fingerprint,
    username: camera.username,
    password,
  };
  return open(connection, large, ending);
}

/** A camera under two addresses would be two assets that fight over one key. */
function claim(owners: Map<string, string>, asset_key: string, name: string): void {
  const owner = owners.get(asset_key);
  if (owner !== undefined) {
    throw new DeviceUnreachable(
      `it is the same camera as "${owner}" (${asset_key}); remove one of the two from the configuration`,
    );
  }
  owners.set(asset_key, name);
}

function commandsOf(
  { options, stopping }: CameraParts,
  { ptz_profile, services }: Device,
  soap: Soap,
  signal: AbortSignal,
): readonly Command[] {
  const url = services.get('ptz');
  if (ptz_profile === undefined || url === undefined) return [];
  const move_ms = options.ptz.move_s * 1_000;
  return ptzCommands({ soap, url, profile: ptz_profile, move_ms, signal, stopping });
}
