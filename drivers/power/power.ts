/** The kit's battery, from the kernel or from Network UPS Tools. */
import { noFeeds } from '../../src/contract/feeds.ts';
import { defineDriver, type DriverHost } from '../../src/driver/driver.ts';
import { sleep } from '../../src/platform/time.ts';
import { type NutSource, openUps } from './nut.ts';
import { ConnectionLost } from './nut-session.ts';
import { type PowerOptions, powerOptions } from './options.ts';
import type { Reading } from './reading.ts';
import { SysfsBatteries } from './sysfs.ts';
import { createWarnings } from './warnings.ts';

export const power = defineDriver({
  name: 'power',
  feeds: noFeeds,
  options: powerOptions,
  run: async (options, host) => (options.nut ? runNut(options, options.nut, host) : runSysfs(options, host)),
});

type PowerHost = DriverHost<typeof noFeeds>;

async function runSysfs(options: PowerOptions, host: PowerHost): Promise<void> {
  const batteries = new SysfsBatteries(options.roots.sys);
  await poll(options, host, async () => batteries.read(performance.now(), host.signal));
}

async function runNut(
  options: PowerOptions,
  nut: NonNullable<PowerOptions['nut']>,
  host: PowerHost,
): Promise<void> {
  let source: NutSource | undefined;
  const open = async (): Promise<NutSource> => {
    source = await openUps(nut, host.signal);
    return source;
  };
  const read = async (): Promise<Reading> => {
    try {
      return await (source ?? (await open())).read();
    } catch (error) {
      // upsd disconnects a client that is silent for a minute, and all when it restarts: it is lost if it cannot be reached again.
      if (!(error instanceof ConnectionLost) || host.signal.aborted) throw error;
      return (await open()).read();
    }
  };
  try {
    await poll(options, host, read);
  } catch (error) {
    if (!host.signal.aborted) throw error;
  } finally {
    source?.close();
    // What a UPS reported is no fact about a upsd that is lost.
    host.reportStatus({});
  }
}

async function poll(options: PowerOptions, host: PowerHost, read: () => Promise<Reading>): Promise<void> {
  const warn = createWarnings(host.log, options);
  while (!host.signal.aborted) {
    const reading = await read();
    if (host.signal.aborted) return;
    report(host, reading);
    warn(reading);
    await sleep(options.interval_s * 1_000, host.signal);
  }
}

function report(host: PowerHost, reading: Reading): void {
  host.reportKit({ battery: reading.percent, battery_charging: reading.charging });
  const facts = {
    battery_pct: reading.percent,
    charging: reading.charging,
    state: reading.state,
    voltage_v: reading.voltage_v,
    runtime_s: reading.runtime_s,
    alarm: reading.alarm,
    reason: reading.reason,
  };
  host.reportStatus(Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== null)));
}
