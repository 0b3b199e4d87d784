/** The door that one run of a driver gets. It is shut for good when the run is over: later words are ignored. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { FeedSet } from '../contract/feeds.ts';
import type { Driver, AssetSink, DriverHost, DriverLog } from '../driver/driver.ts';
import type { Asset } from './asset.ts';
import type { Assets } from './assets.ts';
import type { Kit } from './kit.ts';

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
  readonly onFacts: (facts: StatusFacts) => void;
}

/** Facts of one driver that status shows. */
const facts_max = 32;

export function openHost(parts: HostParts): {
  readonly host: DriverHost<FeedSet>;
  readonly shut: () => void;
} {
  const { name, driver, log, signal, assets, kit, state_dir, onUp, onFacts } = parts;
  const owner = { name, feeds: driver.feeds, log };
  const door = { open: true };
  /** Does `act`, which shows that the device answered, while the run goes on. */
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
      onUp();
      return sinkOf(asset, parts, door);
    },
    reportKit: (part) => whileOpen(() => kit.report(name, part, log)),
    reportLink: (knowledge) => whileOpen(() => kit.reportLink(name, knowledge)),
    reportLocation(fix) {
      // The technician's word does not show that a device answered.
      if (fix?.source !== 'manual') whileOpen(() => kit.reportLocation(name, fix));
      else if (door.open) kit.reportLocation(name, fix);
    },
    serveGateway(commands) {
      if (door.open) assets.serveGateway(owner, commands);
    },
    stateFile(file) {
      try {
        mkdirSync(state_dir, { recursive: true, mode: 0o700 });
      } catch {
        // A disk that refuses must not keep the driver from its devices: it hears of it when it writes.
      }
      return join(state_dir, file);
    },
    reportStatus(facts) {
      if (door.open) onFacts(Object.fromEntries(Object.entries(facts).slice(0, facts_max)));
    },
  };
  return {
    host,
    shut: () => {
      door.open = false;
    },
  };
}

function sinkOf(
  asset: Asset | undefined,
  { assets, log }: HostParts,
  door: { readonly open: boolean },
): AssetSink<FeedSet> {
  /** The asset while the run goes on, if it is this instance's and nobody removed it. */
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
      const alive = live();
      if (online) alive?.touch();
      alive?.setOnline(online, reason);
    },
    remove() {
      const alive = live();
      if (alive) assets.remove(alive);
    },
  };
}

/** False also for NaN. A position that no map can show is left out: receivers without a fix say such things. */
function isPlace(lat: number, lon: number): boolean {
  return Math.abs(lat) <= 90 && Math.abs(lon) <= 180;
}
