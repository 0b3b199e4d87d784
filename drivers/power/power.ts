/** The kit's battery, from the kernel or from Network UPS Tools. */
import { noFeeds } from '../../src/contract/feeds.ts';
import { defineDriver, type DriverHost, type DriverLog } from '../../src/toolkit/driver/driver.ts';
import { sleep } from '../../src/platform/time.ts';
import { type NutSource, openUps } from './nut.ts';
import { ConnectionLost } from './nut-session.ts';
import { type PowerOptions, powerOptions } from './options.ts';
import type { Reading } from './reading.ts';
import { SysfsBatteries } from './sysfs.ts';
import { texts } from './texts.ts';

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

/** Keeps a battery at the limit from logging again and again. */
const hysteresis_pct = 5;

/** Returns a function to call with each reading. */
export function createWarnings(
  log: DriverLog,
  { low_pct, interval_s, nut }: Pick<PowerOptions, 'low_pct' | 'interval_s'> & { readonly nut?: unknown },
): (reading: Reading) => void {
  let low = false;
  let contradictions = 0;
  let alarm: string | null = null;
  let isKnown = true;
  return (reading) => {
    const now = isLow(reading, low, low_pct);
    contradictions = contradicts(reading, low_pct) ? contradictions + 1 : 0;
    const facts = { battery_pct: reading.percent, runtime_s: reading.runtime_s };
    if (now && !low) log.warn(facts, texts.battery_low);
    if (!now && low) log.info(facts, texts.battery_recovered);
    low = now;
    if (contradictions === Math.ceil(contradiction_s / interval_s))
      log.warn({ ...facts, state: reading.state }, texts.battery_contradicts);
    if (nut) isKnown = logData(log, reading, isKnown);
    // Without data it is unknown whether the alarm has ended.
    if (reading.state === null || reading.alarm === alarm) return;
    if (reading.alarm !== null) log.warn({ alarm: reading.alarm }, texts.ups_alarm);
    else log.info({ alarm }, texts.ups_alarm_cleared);
    alarm = reading.alarm;
  };
}

/** From here on a charge contradicts the report of a low battery. */
const high_pct = 50;
/** How long until that is worth a line: some UPSs report it for a second (networkupstools/nut#2347), or at each power failure (#1942, #3087). */
const contradiction_s = 60;

function contradicts({ percent, reports_low }: Reading, low_pct: number): boolean {
  return reports_low && percent !== null && percent > Math.max(high_pct, low_pct + hysteresis_pct);
}

/** Returns whether the UPS reports anything. */
function logData(log: DriverLog, { state, reason }: Reading, before: boolean): boolean {
  const isKnown = state !== null || reason === null;
  if (before && !isKnown) log.warn({ reason }, texts.ups_data_lost);
  if (!before && isKnown) log.info({ state }, texts.ups_data_back);
  return isKnown;
}

/** An unknown charge keeps the state before. */
function isLow(reading: Reading, before: boolean, low_pct: number): boolean {
  const { percent, charging, reports_low } = reading;
  if (reports_low && !contradicts(reading, low_pct)) return true;
  if (charging === true) return false;
  if (percent === null) return before;
  return percent <= (before ? low_pct + hysteresis_pct : low_pct);
}
