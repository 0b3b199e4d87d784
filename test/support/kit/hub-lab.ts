/** A hub with a recording outbox and log, for tests with fake or real time. */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { telemetryOf, telemetrySection } from '../../../src/kit/config/telemetry.ts';
import type { Driver } from '../../../src/toolkit/driver/driver.ts';
import { createHub, type HubOptions } from '../../../src/kit/hub/hub.ts';
import type { Clock } from '../../../src/platform/clock.ts';
import { recordingLog } from '../recording-log.ts';
import { recordingOutbox } from '../recording-outbox.ts';

export const kit_id = '3b0d6b4e-6f0c-4c58-9d0e-0f6d8c1a2b3c';

/** What a configuration file without the section says. */
export const telemetry_defaults = telemetryOf(telemetrySection.parse({}));

/** Follows the global clocks, which a test may fake. */
const globalClock: Clock = {
  boot_id: 'test',
  stamp: () => ({ time_ms: Date.now(), mono_ms: performance.now(), synced: true }),
};

/** Starts a hub that ends with `stop`. `online` may be changed at any time. */
export function hubLab(more: Partial<HubOptions> = {}) {
  const stopping = new AbortController();
  const outbox = recordingOutbox();
  const log = recordingLog();
  const link: { online: boolean; carrier: string | null } = { online: true, carrier: null };
  const broken: unknown[] = [];
  const hub = createHub({
    kit_id,
    state_dir: join(tmpdir(), `kit-connector-hub-${process.pid}`),
    outbox,
    announced: [],
    configured: ['drones'],
    clock: globalClock,
    log,
    rates: { default: 1_000 },
    isOnline: () => link.online,
    carrier: () => link.carrier,
    onLinkBack: () => undefined,
    telemetry_floor_ms: 60_000,
    telemetry_pace_ms: 5_000,
    deadbands: telemetry_defaults.deadbands,
    cityOf: () => null,
    allow: () => true,
    observe: () => undefined,
    streams: { want: () => undefined, urlOf: () => null, healthOf: () => undefined },
    picturePath: (id) => `/pictures/${id}`,
    alarmPicturesOff: () => undefined,
    files: { add: async () => Promise.reject(new Error('not used here')) },
    keepsStills: () => false,
    broken: (error) => void broken.push(error),
    signal: stopping.signal,
    ...more,
  });
  const running: Promise<void>[] = [];
  return {
    hub,
    outbox,
    log,
    link,
    /** With what parts of it contradicted themselves. */
    broken,
    /** Runs a driver until the lab or `signal` stops. */
    run(driver: Driver, name = 'drones', { options = {}, signal = stopping.signal }: RunOptions = {}) {
      const done = hub.runDriver({ name, driver, run: driver.configure(options), log, signal });
      running.push(done);
      return done;
    },
    stop: async () => {
      stopping.abort();
      await Promise.all(running);
    },
  };
}

interface RunOptions {
  readonly options?: unknown;
  readonly signal?: AbortSignal;
}
