/** The host of one run of a driver. It closes when the run is over: later calls are ignored. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { FeedSet } from '../../contract/feeds.ts';
import { cut, name_chars_max, sentence_chars_max } from '../../contract/limits.ts';
import type { AssetSink, DeviceReport, Driver, DriverHost, DriverLog } from '../../toolkit/driver/driver.ts';
import { cleanText, cleanTextsWithin } from '../../platform/foreign-text.ts';
import type { Asset } from './assets/asset.ts';
import type { Assets } from './assets/assets.ts';
import type { Kit } from './kit/kit.ts';
import { texts } from './texts.ts';
import { outageLog } from '../../toolkit/device/outage-log.ts';
import { serveDevice, type SessionState } from '../../toolkit/device/device-session.ts';
import { DeviceUnreachable } from '../../platform/errors.ts';
import { aborted, within } from '../../platform/time.ts';

export type StatusFacts = Readonly<Record<string, string | number | boolean | null>>;

interface HostParts {
  /** Configured name of the driver instance. */
  readonly name: string;
  readonly driver: Driver;
  readonly log: DriverLog;
  readonly signal: AbortSignal;
  readonly assets: Assets;
  readonly kit: Kit;
  /** Of this instance; made at the first use. */
  readonly state_dir: string;
  /** The device answered: the first announcement or report of this run. */
  readonly onUp: () => void;
  readonly onFacts: (facts: StatusFacts, devices: readonly DeviceReport[]) => void;
  readonly onOptions: DriverHost<FeedSet>['onOptions'];
  readonly files: DriverHost<FeedSet>['files'];
}

/** Facts of one driver that status shows. */
const facts_max = 32;
const fact_chars_max = 500;
/** Devices of one driver that status shows. */
const devices_max = 128;

export function openHost(parts: HostParts): {
  readonly host: DriverHost<FeedSet>;
  readonly shut: () => void;
} {
  const { name, driver, log, signal, assets, kit, state_dir, onUp, onFacts, onOptions } = parts;
  const owner = { name, feeds: driver.feeds, log };
  const door = { open: true };
  /** Runs `act`, which shows that the device answered, unless the run is over. */
  const whileOpen = (act: () => void): void => {
    if (!door.open) return;
    act();
    onUp();
  };

  const host: DriverHost<FeedSet> = {
    signal,
    log,
    announce(about, commands = []) {
      if (!door.open) return sinkOf(undefined, parts, door);
      const asset = assets.announce(owner, about, commands);
      assets.publishGatewayNews();
      onUp();
      return sinkOf(asset, parts, door);
    },
    retract(asset_key) {
      if (door.open) assets.retract(owner, asset_key);
    },
    reportKit: (part) => whileOpen(() => kit.report(name, part, log)),
    linkType: (link) => kit.links().find((each) => each.name === link)?.type ?? null,
    reportLink: (knowledge) => whileOpen(() => kit.reportLink(name, knowledge)),
    reportLocation(fix) {
      // A configured position does not show that a device answered.
      if (fix?.source !== 'manual') whileOpen(() => kit.reportLocation(name, fix));
      else if (door.open) kit.reportLocation(name, fix);
    },
    serveGateway(commands) {
      if (door.open) assets.serveGateway(owner, commands);
    },
    publishGateway(feed, message) {
      if (!door.open) return;
      if (feed === 'data_caps') kit.noteCaps(name, message);
      assets.publishGateway(owner, feed, message);
    },
    files: parts.files,
    stateFile(file) {
      try {
        mkdirSync(state_dir, { recursive: true, mode: 0o700 });
      } catch {
        // A failing disk must not keep the driver from its devices: its own write will fail.
      }
      return join(state_dir, file);
    },
    reportStatus(facts, devices = []) {
      if (!door.open) return;
      const shown = devices.slice(0, devices_max).map(cleanReport);
      onFacts(cleanFacts(facts), shown);
      for (const device of shown) assets.explain(name, device);
    },
    onOptions: (take) => (door.open ? onOptions(take) : undefined),
  };
  return {
    host,
    shut: () => {
      door.open = false;
    },
  };
}

function cleanFacts(facts: StatusFacts): StatusFacts {
  const some = Object.fromEntries(Object.entries(facts).slice(0, facts_max));
  return cleanTextsWithin(fact_chars_max, some);
}

/** What a device answered is foreign text. */
function cleanReport(report: DeviceReport): DeviceReport {
  const { name, tried, reason } = report;
  return {
    ...report,
    name: cut(cleanText(name), name_chars_max),
    tried: cut(cleanText(tried), name_chars_max),
    reason: reason === null ? null : cut(cleanText(reason), sentence_chars_max),
  };
}

function sinkOf(
  asset: Asset | undefined,
  { assets, log }: HostParts,
  door: { readonly open: boolean },
): AssetSink<FeedSet> {
  /** The asset during the run, if it belongs to this instance and was not removed. */
  const live = (): Asset | undefined => (door.open && asset && !asset.removed ? asset : undefined);
  return {
    publish(feed, message) {
      const alive = live();
      if (alive) assets.publish(alive, feed, message, log);
    },
    setPosition({ lat, lon, alt_m }) {
      const alive = live();
      if (!alive || !isPlace(lat, lon)) return;
      alive.touch();
      alive.setPosition({ lat, lon, alt_m: alt_m ?? null });
    },
    setOnline(online, reason) {
      if (online && door.open && asset?.forgotten) assets.revive(asset);
      const alive = live();
      if (online) alive?.touch();
      if (online && alive?.online === false) assets.takeHealth(alive);
      alive?.setOnline(online, reason);
    },
    setHealth(item, health) {
      live()?.setHealth(item, health);
    },
    remove() {
      const alive = live();
      if (alive) assets.remove(alive, texts.driver_removed_it);
    },
  };
}

/** False also for NaN. Positions that no map can show are dropped: receivers without a fix report them. */
function isPlace(lat: number, lon: number): boolean {
  return Math.abs(lat) <= 90 && Math.abs(lon) <= 180;
}

export type DriverState =
  /** First run, no answer from the device yet. */
  | { readonly state: 'starting' }
  | { readonly state: 'up' }
  /** Tried again after `retry_ms`. `rejected`: the device rejects the connector, so that the pauses are hours. */
  | { readonly state: 'down' | 'rejected'; readonly reason: string; readonly retry_ms: number }
  | { readonly state: 'stopped' }
  /** It did not stop in time and was abandoned. */
  | { readonly state: 'hung'; readonly reason: string };

export interface Supervised {
  readonly log: DriverLog;
  /** Aborts when the driver must stop for good. */
  readonly signal: AbortSignal;
  /** One run of the driver. `signal` aborts when this run must end; call `onUp` when the device answers. */
  readonly run: (signal: AbortSignal, onUp: () => void) => Promise<void>;
  readonly onState: (state: DriverState) => void;
}

/** Time that a driver has to end after its signal aborted. */
export const stop_deadline_ms = 3_000;
/** A stall of the process, such as on a machine without a free processor, counts as one of these: no driver could have ended meanwhile. */
const stop_slice_ms = 100;

/**
 * Keeps one driver running: a device session whose runs have a deadline to stop.
 * Runs the driver again and again until `signal` aborts. Never rejects.
 */
export async function supervise({ log, signal, run, onState }: Supervised): Promise<void> {
  const logOutage = outageLog({ log, kind: 'device' });
  let isHung = false;
  await serveDevice({
    signal,
    run: async (run_signal, onUp) => {
      const ending = await runUntilDeadline(async () => run(run_signal, onUp), run_signal);
      if (ending === 'hung') isHung = true;
      else if (!signal.aborted) throw new DeviceUnreachable(texts.driver_ended);
    },
    onState: (state) => {
      logOutage(state);
      if (!isHung) onState(driverState(state));
    },
  });
  if (!isHung) return;
  log.error({ deadline_ms: stop_deadline_ms }, texts.driver_abandoned);
  onState({ state: 'hung', reason: `did not stop within ${stop_deadline_ms / 1000} s` });
}

function driverState(state: SessionState): DriverState {
  if (state.state === 'up') return { state: 'up' };
  if (state.state !== 'down' && state.state !== 'rejected') return state;
  return { state: state.state, reason: state.reason, retry_ms: state.retry_ms };
}

/** A late failure of an abandoned run is swallowed. */
async function runUntilDeadline(run: () => Promise<void>, signal: AbortSignal): Promise<'ended' | 'hung'> {
  const ended = run().then(() => 'ended' as const);
  let ending = (await Promise.race([ended, aborted(signal)])) ?? undefined;
  for (let used_ms = 0; !ending && used_ms < stop_deadline_ms; used_ms += stop_slice_ms) {
    ending = await within(stop_slice_ms, ended);
  }
  return ending ?? 'hung';
}
