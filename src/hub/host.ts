/** The door that one run of a driver gets. It is shut for good when the run is over: later words are ignored. */
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
  /** The device answered: the first announcement or report of this run. */
  readonly onUp: () => void;
  readonly onFacts: (facts: StatusFacts) => void;
}

/** Facts of one driver that status shows. */
const facts_max = 32;

export function openHost({ name, driver, log, signal, assets, kit, onUp, onFacts }: HostParts): {
  readonly host: DriverHost<FeedSet>;
  readonly shut: () => void;
} {
  let open = true;
  const owner = { name, feeds: driver.feeds, log };

  const sinkOf = (asset: Asset | undefined): AssetSink<FeedSet> => {
    /** Does `act` while the run goes on, the asset is this instance's and nobody removed it. */
    const whileAlive = (act: (live: Asset) => void): void => {
      if (open && asset && !asset.removed) act(asset);
    };
    return {
      publish: (feed, message) =>
        whileAlive((live) => {
          if (live.gate?.publish(feed, message, log)) live.touch();
        }),
      setPosition: ({ lat, lon, alt_m }) =>
        whileAlive((live) => {
          if (!isPlace(lat, lon)) return;
          live.touch();
          live.setPosition({ lat, lon, alt_m: alt_m ?? null });
        }),
      setOnline: (online, reason) =>
        whileAlive((live) => {
          if (online) live.touch();
          live.setOnline(online, reason);
        }),
      remove: () => whileAlive((live) => assets.remove(live)),
    };
  };

  const host: DriverHost<FeedSet> = {
    signal,
    log,
    announce(about, commands = []) {
      if (!open) return sinkOf(undefined);
      const asset = assets.announce(owner, about, commands);
      onUp();
      return sinkOf(asset);
    },
    reportKit(part) {
      if (!open) return;
      kit.report(name, part, log);
      onUp();
    },
    reportStatus(facts) {
      if (open) onFacts(Object.fromEntries(Object.entries(facts).slice(0, facts_max)));
    },
  };
  return {
    host,
    shut: () => {
      open = false;
    },
  };
}

/** False also for NaN. A position that no map can show is left out: receivers without a fix say such things. */
function isPlace(lat: number, lon: number): boolean {
  return Math.abs(lat) <= 90 && Math.abs(lon) <= 180;
}
