/** The onvif driver: serves each configured camera independently. */
import { onvifFeeds } from '../../src/contract/feeds.ts';
import { openIdentities } from '../../src/device/identities.ts';
import { defineDriver } from '../../src/driver/driver.ts';
import { aborted, within } from '../../src/platform/time.ts';
import { type CameraState, serveCamera } from './camera/camera.ts';
import { LargeReplies } from './soap/large-replies.ts';
import { entryOf, onvifOptions } from './options.ts';
import { lookAround } from './surroundings.ts';
import { Webhook } from './events/webhook.ts';

/** The driver has 3 s to end: moving cameras are stopped first. */
const last_stops_ms = 1_800;
/** Cameras listed one by one in the status, beside the sums. */
const named_max = 24;

export const onvif = defineDriver({
  name: 'onvif',
  feeds: onvifFeeds,
  options: onvifOptions,
  run: async (options, host) => {
    const ending = new AbortController();
    const large = new LargeReplies({ log: host.log, signal: ending.signal });
    const webhook = new Webhook(options.webhook);
    const states = new Map<string, CameraState>();
    const stops = new Set<Promise<unknown>>();
    const unknown = { count: 0, names: '' };
    const report = (): void => host.reportStatus(factsOf(states, unknown, large.stalls));
    const owners = new Map<string, string>();
    const bindings = await openIdentities(host, options.cameras.map(entryOf));
    const cameras = options.cameras.map(async (camera) =>
      serveCamera({
        camera,
        options,
        host,
        large,
        webhook,
        owners,
        bindings,
        onState: (state) => {
          states.set(camera.name, state);
          report();
        },
        stopping: (stop) => {
          stops.add(stop);
          void stop.finally(() => stops.delete(stop));
        },
        ending: ending.signal,
      }),
    );
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
  },
});

function factsOf(
  states: ReadonlyMap<string, CameraState>,
  unknown: { readonly count: number; readonly names: string },
  stalls: number,
): Record<string, string | number> {
  const list = [...states];
  const bad = list.filter(([, { state }]) => state !== 'online');
  const named = bad
    .slice(0, named_max)
    .map(([name, each]): [string, string] => [
      `camera ${name}`,
      'reason' in each ? `${each.state}: ${each.reason}` : each.state,
    ]);
  return {
    cameras: list.length,
    cameras_online: list.length - bad.length,
    ...(stalls > 0 ? { replies_that_stalled: stalls } : {}),
    ...(unknown.count > 0 ? { not_configured: unknown.names } : {}),
    ...Object.fromEntries(named),
  };
}
