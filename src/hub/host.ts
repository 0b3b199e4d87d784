/** The host of one run of a driver. It closes when the run is over: later calls are ignored. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { FeedSet } from '../contract/feeds.ts';
import { cut, name_chars_max, sentence_chars_max } from '../contract/limits.ts';
import type { Driver, AssetSink, DeviceReport, DriverHost, DriverLog } from '../driver/driver.ts';
import { cleanText, cleanTextsWithin } from '../platform/foreign-text.ts';
import type { Asset } from './assets/asset.ts';
import type { Assets } from './assets/assets.ts';
import type { Kit } from './kit/kit.ts';
import { texts } from './texts.ts';

export type StatusFacts = Readonly<Record<string, string | number | boolean | null>>;

export interface HostParts {
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
      if (door.open) assets.publishGateway(owner, feed, message);
    },
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
      if (alive?.gate?.publish(feed, message, log)) alive.touch();
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
      alive?.setOnline(online, reason);
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
