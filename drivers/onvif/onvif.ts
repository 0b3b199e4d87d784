/** The onvif driver: serves each configured camera independently. */
import { onvifFeeds } from '../../src/contract/feeds.ts';
import { serveConfiguredDevices } from '../../src/toolkit/device/configured-devices.ts';
import { texts } from '../../src/toolkit/device/texts.ts';
import {
  defineDriver,
  type DeviceReport,
  type Driver,
  type DriverHost,
  type OnOptions,
} from '../../src/toolkit/driver/driver.ts';
import { turn, within } from '../../src/platform/time.ts';
import { type CameraParts, serveCamera } from './camera/camera.ts';
import { type Limits, limits as usual_limits } from './limits.ts';
import { type OnvifOptions, onvifOptions, portOf } from './options.ts';
import { lookAround } from './discovery.ts';
import { texts as driver_texts } from './texts.ts';
import { UnreadTopics } from './events/topics.ts';
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
  const macs = new Map<string, string>();
  /** By name of the camera. */
  const unread = new Map<string, UnreadTopics>();
  let report = (): void => undefined;
  try {
    await serveConfiguredDevices({
      host,
      options,
      onOptions,
      devicesOf: ({ cameras }: OnvifOptions) => cameras,
      portOf,
      weaknessOf: ({ name, tls }) => (tls?.legacy === true ? texts.legacy_tls(name) : undefined),
      factsOf: (reports) => ({ ...factsOf(reports, unknown), ...unreadFact(unread) }),
      onEnd: ({ name }) => void unread.delete(name),
      staysWhenRejected: true,
      end_ms,
      async serve({ device: camera, showStatus: _none, ...served }) {
        const topics = new UnreadTopics(() => report());
        unread.set(camera.name, topics);
        await serveUntilStopped({
          ...served,
          options,
          webhook,
          unread: topics,
          macs,
          limits,
          ending: ending.signal,
          camera,
        });
      },
      async beside(cameras, again) {
        report = again;
        await lookAround({
          options,
          cameras,
          host,
          onFound: (found) => {
            Object.assign(unknown, found);
            report();
          },
        });
      },
    });
  } finally {
    ending.abort();
    await webhook.stop();
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
    await turn();
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

/** One line for status and doctor: names and counts, the most frequent first. */
const unread_shown_max = 3;
const camera_chars_max = 30;

function unreadFact(unread: ReadonlyMap<string, UnreadTopics>): Record<string, string> {
  const all = [...unread]
    .flatMap(([camera, { all: topics }]) =>
      [...topics].map(([topic, count]) => ({ camera: camera.slice(0, camera_chars_max), topic, count })),
    )
    .toSorted((a, b) => b.count - a.count);
  if (all.length === 0) return {};
  const named = all.slice(0, unread_shown_max);
  return { events_not_read: driver_texts.events_not_read(named, all.length - named.length) };
}
