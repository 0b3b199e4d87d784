/** The onvif driver: serves each configured camera independently. */
import { onvifFeeds } from '../../src/contract/feeds.ts';
import { texts } from '../../src/device/texts.ts';
import { DeviceReports } from '../../src/device/device-reports.ts';
import { openIdentities } from '../../src/device/identities.ts';
import { defineDriver, type DeviceReport, type Driver, type DriverHost } from '../../src/driver/driver.ts';
import { aborted, within } from '../../src/platform/time.ts';
import { serveCamera } from './camera/camera.ts';
import { LargeReplies } from './soap/large-replies.ts';
import { type Limits, limits as usual_limits } from './limits.ts';
import { entryOf, type OnvifOptions, onvifOptions, portOf } from './options.ts';
import { lookAround } from './surroundings.ts';
import { Webhook } from './events/webhook.ts';

/** The driver has 3 s to end: moving cameras are stopped first. */
const last_stops_ms = 1_800;

export const onvif = onvifWith(usual_limits);

/** The driver with other limits than the default ones. */
export function onvifWith(limits: Limits): Driver {
  return defineDriver({
    name: 'onvif',
    feeds: onvifFeeds,
    options: onvifOptions,
    run: async (options, host) => runOnvif(options, host, limits),
  });
}

async function runOnvif(
  options: OnvifOptions,
  host: DriverHost<typeof onvifFeeds>,
  limits: Limits,
): Promise<void> {
  const ending = new AbortController();
  const large = new LargeReplies({ log: host.log, signal: ending.signal });
  const webhook = new Webhook(options.webhook);
  const stops = new Set<Promise<unknown>>();
  const unknown = { count: 0, names: '' };
  const reports = new DeviceReports(() => report());
  const report = (): void => host.reportStatus(factsOf(reports.all, unknown, large.stalls), reports.all);
  const owners = new Map<string, string>();
  const bindings = await openIdentities(host, options.cameras.map(entryOf));
  const cameras = options.cameras.map(async (camera) => {
    const device = {
      name: camera.name,
      tried: `${camera.host}:${portOf(camera)}`,
      asset_key: () => bindings.keyOf(entryOf(camera)),
      weakness: camera.tls?.legacy === true ? texts.legacy_tls(camera.name) : undefined,
    };
    return serveCamera({
      camera,
      options,
      host,
      large,
      webhook,
      owners,
      bindings,
      limits,
      onState: (state) => reports.take(device, state),
      stopping: (stop) => {
        stops.add(stop);
        void stop.finally(() => stops.delete(stop));
      },
      ending: ending.signal,
    });
  });
  const looking = lookAround({
    options,
    host,
    onFound: (found) => {
      Object.assign(unknown, found);
      report();
    },
  });
  try {
    await aborted(host.signal);
    // Movements receive the abort now as well; by the next turn each has registered its stop.
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    await within(last_stops_ms, Promise.all([...stops, ...cameras, looking]));
  } finally {
    ending.abort();
    await webhook.stop();
    await large.ended();
  }
}

function factsOf(
  reports: readonly DeviceReport[],
  unknown: { readonly count: number; readonly names: string },
  stalls: number,
): Record<string, string | number> {
  return {
    cameras: reports.length,
    cameras_online: reports.filter(({ state }) => state === 'online').length,
    ...(stalls > 0 ? { replies_that_stalled: stalls } : {}),
    ...(unknown.count > 0 ? { not_configured: unknown.names } : {}),
  };
}
