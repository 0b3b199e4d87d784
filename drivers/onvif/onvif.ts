/** The onvif driver: serves each configured camera independently. */
import { onvifFeeds } from '../../src/contract/feeds.ts';
import { texts } from '../../src/device/texts.ts';
import { DeviceGroup } from '../../src/device/device-group.ts';
import { DeviceReports } from '../../src/device/device-reports.ts';
import { openIdentities } from '../../src/device/identities.ts';
import { isOwnHost } from '../../src/device/own-host.ts';
import {
  defineDriver,
  type DeviceReport,
  type Driver,
  type DriverHost,
  type OnOptions,
} from '../../src/driver/driver.ts';
import { isHostShared } from '../../src/driver/host-option.ts';
import { aborted, within } from '../../src/platform/time.ts';
import { type CameraParts, serveCamera } from './camera/camera.ts';
import { type Limits, limits as usual_limits } from './limits.ts';
import { type CameraOptions, entryOf, type OnvifOptions, onvifOptions, portOf } from './options.ts';
import { lookAround } from './surroundings.ts';
import { Webhook } from './events/webhook.ts';

/** The driver has 3 s to end: moving cameras are stopped first. */
const last_stops_ms = 1_800;
const end_ms = 2_000;

export const onvif = onvifWith(usual_limits);

/** The driver with other limits than the default ones. */
export function onvifWith(limits: Limits): Driver {
  return defineDriver({
    name: 'onvif',
    feeds: onvifFeeds,
    options: onvifOptions,
    devices: 'cameras',
    run: async (options, host, onOptions) => runOnvif({ options, host, onOptions, limits }),
  });
}

interface OnvifRun {
  readonly options: OnvifOptions;
  readonly host: DriverHost<typeof onvifFeeds>;
  readonly onOptions: OnOptions<OnvifOptions>;
  readonly limits: Limits;
}

async function runOnvif({ options, host, onOptions, limits }: OnvifRun): Promise<void> {
  const ending = new AbortController();
  const webhook = new Webhook(options.webhook);
  const unknown = { count: 0, names: '' };
  const reports = new DeviceReports(() => report());
  const report = (): void => host.reportStatus(factsOf(reports.all, unknown), reports.all);
  const owners = new Map<string, string>();
  const macs = new Map<string, string>();
  const bindings = await openIdentities(host, options.cameras.map(entryOf));
  let { cameras } = options;
  const group = new DeviceGroup<CameraOptions, typeof onvifFeeds>({
    host,
    onEnd: ({ name }) => reports.forget(name),
    serve: async (camera, session) => {
      const { host: member } = session;
      const device = {
        name: camera.name,
        tried: `${camera.host}:${portOf(camera)}`,
        asset_key: () => bindings.keyOf(entryOf(camera)),
        weakness: camera.tls?.legacy === true ? texts.legacy_tls(camera.name) : undefined,
      };
      const shared = { options, webhook, owners, macs, bindings, limits, ending: ending.signal };
      await serveUntilStopped({
        ...shared,
        camera,
        is_host_shared: isHostShared(camera, cameras) && !isOwnHost(camera.host),
        host: member,
        onState: reports.follow(device, session),
      });
    },
  });
  group.change(cameras);
  onOptions((next) => {
    if (group.isOver) return undefined;
    ({ cameras } = next);
    bindings.keep(cameras.map(entryOf));
    return group.change(cameras);
  });
  const looking = lookAround({
    options,
    cameras: () => cameras,
    host,
    onFound: (found) => {
      Object.assign(unknown, found);
      report();
    },
  });
  try {
    // It rejects when a camera cannot be served for a reason of this machine, such as its disk.
    await Promise.race([aborted(host.signal), group.ended()]);
    await within(end_ms, Promise.all([group.ended(), looking]));
  } finally {
    ending.abort();
    await webhook.stop();
    await bindings.saved();
  }
}

/** Serves a camera until its host's signal aborts, and then sends the stop of its movements before its connections close. */
async function serveUntilStopped(parts: Omit<CameraParts, 'stopping'>): Promise<void> {
  const stops = new Set<Promise<unknown>>();
  const over = new AbortController();
  try {
    await serveCamera({
      ...parts,
      ending: AbortSignal.any([parts.ending, over.signal]),
      stopping: (stop) => {
        stops.add(stop);
        void stop.finally(() => stops.delete(stop));
      },
    });
    // Movements receive the abort now as well; by the next turn each has registered its stop.
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    await within(last_stops_ms, Promise.all(stops));
  } finally {
    over.abort();
  }
}

function factsOf(
  reports: readonly DeviceReport[],
  unknown: { readonly count: number; readonly names: string },
): Record<string, string | number> {
  return {
    cameras: reports.length,
    cameras_online: reports.filter(({ state }) => state === 'online').length,
    ...(unknown.count > 0 ? { not_configured: unknown.names } : {}),
  };
}
