/** Runs the drivers, keeps the state of assets and kit that they report, and decides what goes to the outbox. */
import type { CommandDefinition } from '../../contract/assets.ts';
import { join } from 'node:path';
import type { KitTelemetry } from '../../contract/kit.ts';
import { cut, sentence_chars_max } from '../../contract/limits.ts';
import { cleanText } from '../../platform/foreign-text.ts';
import type { DataCap, FeedSet } from '../../contract/feeds.ts';
import type {
  ConfiguredRun,
  DeviceReport,
  Driver,
  DriverHost,
  DriverLog,
} from '../../toolkit/driver/driver.ts';
import type { Health } from '../../toolkit/driver/health.ts';
import { CommandRefused } from '../../platform/errors.ts';
import type { Appender } from '../outbox/api.ts';
import type { Opened } from '../outbox/protocol.ts';
import type { Clock } from '../../platform/clock.ts';
import type { AssetActivity, ObserveAssets } from './activity.ts';
import { AlarmPictures } from './assets/alarm-pictures.ts';
import type { AssetView } from './assets/asset.ts';
import { Assets, type Streams } from './assets/assets.ts';
import type { Allow, FoundCommand } from './commands.ts';
import { type DriverState, openHost, type StatusFacts, supervise } from './host.ts';
import { Kit, type KnownLink, type TelemetryPace } from './kit/kit.ts';
import { Clips, type Recordings } from './assets/clips.ts';
import { type Picture, Pictures } from './assets/pictures.ts';
import { texts } from './texts.ts';
import { type FeedRates, Pacer } from './rate.ts';
import { type CityOf, KitLocation, type LocationView } from './kit/location.ts';

/** Beside the folders of the driver instances, whose names have no dot. */
const last_fix_file = 'last-fix.json';

export interface HubOptions extends TelemetryPace {
  readonly kit_id: string;
  /** Holds a folder for each driver instance that keeps files. */
  readonly state_dir: string;
  readonly outbox: Appender;
  /** What earlier runs left retained. */
  readonly announced: Opened['announced'];
  /** Names of the configured driver instances: what others announced in an earlier run is retracted. */
  readonly configured: readonly string[];
  readonly clock: Clock;
  readonly log: DriverLog;
  readonly rates: FeedRates;
  /** Whether the broker can be reached now. */
  readonly isOnline: () => boolean;
  /** Interface that packets to the broker leave by; null: not known. */
  readonly carrier: () => string | null;
  /** That interface was reported offline, and is no longer. */
  readonly onLinkBack: () => void;
  readonly cityOf: CityOf;
  /** Local policy on commands; it gives the same answer for the same asset and command until `policyChanged`. */
  readonly allow: Allow;
  readonly streams: Streams;
  /** Path at the kit's service of the picture of an asset; undefined: there is no service, and no pictures. */
  readonly picturePath?: ((asset_id: string) => string) | undefined;
  /** Why alarms have no pictures now, as on a metered link; undefined: they have. */
  readonly alarmPicturesOff: () => string | undefined;
  /** Takes files of drivers for the cloud. */
  readonly files: DriverHost<FeedSet>['files'];
  /** Whether stills of cameras are such files too. */
  readonly keepsStills: () => boolean;
  /** The media server's; undefined: it does not record. */
  readonly recordings?: Recordings | undefined;
  /** Called when a part contradicts itself: the process has to start again. */
  readonly broken: (error: unknown) => void;
  readonly observe: ObserveAssets;
  /** Ends every timer of the hub. What is held back for its rate is sent then. */
  readonly signal: AbortSignal;
}

interface DriverRun {
  /** Configured name of the instance. */
  readonly name: string;
  readonly driver: Driver;
  readonly run: ConfiguredRun;
  readonly log: DriverLog;
  readonly signal: AbortSignal;
}

/** What people and the log know an asset by. */
export interface NamedAsset {
  readonly id: string;
  readonly key: string;
  readonly name: string;
  readonly driver: string;
}

/** A driver instance as status shows it. Times are ISO 8601, UTC. */
export interface DriverView {
  readonly name: string;
  readonly driver: string;
  readonly state: DriverState['state'];
  readonly since: string;
  readonly reason: string | null;
  readonly next_try_at: string | null;
  /** Runs since the start, and how many of them ended with an error. */
  readonly runs: number;
  readonly failures: number;
  /** What the driver shows of itself. */
  readonly facts: StatusFacts;
  /** Its configured devices, where the driver reports them. */
  readonly devices?: readonly DeviceReport[];
}

export interface Hub {
  /** Keeps the driver running. Resolves when it has stopped, was rejected by its device, or was abandoned. Never rejects. */
  readonly runDriver: (run: DriverRun) => Promise<void>;
  /**
   * Gives other options to a running driver (see `OnOptions`). Returns the devices that are tried again; undefined when the
   * driver must be restarted for them.
   */
  readonly changeOptions: (name: string, raw: unknown) => readonly string[] | undefined;
  /** Publishes every retained message and a whole kit snapshot again: for `down/sync` and for a broker that lost its memory. */
  readonly announceAll: () => void;
  /** Takes over what an earlier run left announced, when the buffer file could not be read at the start. */
  readonly takeUp: (announced: Opened['announced']) => void;
  /** Viewers find the stream of this asset elsewhere now. */
  readonly streamChanged: (asset_key: string) => void;
  readonly setRates: (rates: FeedRates) => void;
  readonly setTelemetry: (pace: TelemetryPace) => void;
  /** Local policy answers differently from now on. */
  readonly policyChanged: () => void;
  /** Removes a driver instance that has stopped, and retracts what it announced. */
  readonly retire: (name: string) => void;
  /** Monotonic time at which drivers and kit were last gone through, which happens every second. */
  readonly ticked_ms: () => number;
  /** The command, live, or a sentence for the operator. The caller checks `asset.online`. */
  readonly findCommand: (asset_id: string, command_name: string) => FoundCommand;
  /** The commands that a task may call, as published. */
  readonly commandsOf: (asset_id: string) => readonly CommandDefinition[];
  /** See `Pictures.of`. */
  readonly picture: (asset_id: string, age_max_ms: number) => Promise<Picture>;
  readonly assets: () => readonly AssetView[];
  /** Forgets an asset that is gone for good; answers why it stays. */
  readonly forgetAsset: (asset_id: string) => string | undefined;
  readonly assetNamed: (asset_id: string) => NamedAsset | undefined;
  /** Asks the camera that the asset is, where it can, for a key frame of its stream. */
  readonly requestKeyFrame: (asset_id: string) => Promise<void>;
  readonly drivers: () => readonly DriverView[];
  readonly kit: () => KitTelemetry;
  /** The links, each with the reason of its state. */
  readonly links: () => readonly KnownLink[];
  /** The data cap of a link, as it was reported last. */
  readonly dataCap: (link: string | undefined) => DataCap | undefined;
  /** Age and driver of the kit's location, and why it is not better. */
  readonly location: () => LocationView;
}

/**
 * Opens the hub. What an earlier run announced and this configuration does not contain is retracted at once; beside the
 * outbox and the clock none of the given functions is called before it returns.
 */
export function createHub(options: HubOptions): Hub {
  const { clock, signal } = options;
  const pacer = new Pacer(options.rates, () => clock.stamp().mono_ms, signal);
  let ready = false;
  /** Silent until the caller has the hub in hand: what is restored is no change. */
  const observe = (activity: AssetActivity): void => {
    if (ready) options.observe(activity);
  };
  const { picturePath: pathOf, files, keepsStills } = options;
  const onOutcome = (asset_id: string, health: Health): void => assets.pictureTaken(asset_id, health);
  const isOffered = pathOf !== undefined || keepsStills();
  const pictures = isOffered
    ? new Pictures({ clock, pathOf, files, keepsStills, onOutcome, signal })
    : undefined;
  const alarm_pictures = new AlarmPictures({ ...options, pictures });
  const { recordings } = options;
  const clips = recordings && new Clips({ ...options, recordings });
  const assets: Assets = new Assets({ ...options, pacer, observe, pictures, alarm_pictures, clips });
  const kit = openKit(options, assets);
  const drivers = new Map<string, DriverView>();
  const takers = new Map<string, TakeOptions>();
  ready = true;

  return {
    runDriver: async (order) => runOne(order, { ...options, drivers, takers, assets, kit }),
    changeOptions: (name, raw) => takers.get(name)?.(raw),
    announceAll() {
      assets.announceAgain();
      kit.announce();
    },
    takeUp: (announced) => assets.takeUp(announced),
    streamChanged: (asset_key) => assets.streamChanged(asset_key),
    setRates: (rates) => pacer.setRates(rates),
    setTelemetry: (pace) => kit.setPace(pace),
    policyChanged: () => assets.policyChanged(),
    retire(name) {
      drivers.delete(name);
      assets.retire(name);
    },
    ticked_ms: () => kit.ticked_ms,
    findCommand: (asset_id, command_name) => assets.find(asset_id, command_name),
    commandsOf: (asset_id) => assets.definitions(asset_id),
    async picture(asset_id, age_max_ms) {
      if (!pictures) throw new CommandRefused(texts.no_pictures);
      return pictures.of(assets.named(asset_id), assets.find(asset_id, 'snapshot'), age_max_ms);
    },
    assets: () => assets.view(),
    forgetAsset: (asset_id) => assets.forget(asset_id),
    assetNamed(asset_id) {
      const facts = assets.named(asset_id)?.facts;
      return facts && { id: facts.id, key: facts.asset_key, name: facts.name, driver: facts.driver };
    },
    requestKeyFrame: async (asset_id) => assets.named(asset_id)?.requestKeyFrame?.(),
    drivers: () => [...drivers.values()],
    kit: () => kit.view(),
    links: () => kit.links(),
    dataCap: (link) => kit.dataCap(link),
    location: () => kit.location(),
  };
}

function openKit(options: HubOptions, assets: Assets): Kit {
  return new Kit({
    ...options,
    kit_location: new KitLocation({ ...options, file: join(options.state_dir, last_fix_file) }),
    onLocation: ({ latitude: lat, longitude: lon, altitude }) =>
      assets.placeGateway({ lat, lon, alt_m: altitude ?? null }),
    gatewayId: () => assets.gatewayId(),
  });
}

type TakeOptions = Parameters<DriverHost<FeedSet>['onOptions']>[0];

/** What a driver's run works on. */
interface RunParts {
  /** Of the runs that take other options, by driver instance. */
  readonly takers: Map<string, TakeOptions>;
  readonly drivers: Map<string, DriverView>;
  readonly assets: Assets;
  readonly kit: Kit;
  readonly clock: Clock;
  readonly state_dir: string;
  readonly files: DriverHost<FeedSet>['files'];
}

async function runOne({ name, driver, run, log, signal }: DriverRun, parts: RunParts): Promise<void> {
  const { drivers, takers, assets, kit, clock } = parts;
  const nowIso = (ahead_ms = 0): string => new Date(clock.stamp().time_ms + ahead_ms).toISOString();
  drivers.set(name, firstView(name, driver, nowIso()));
  const show = (news: Partial<DriverView>): void => {
    const view = drivers.get(name);
    if (view) drivers.set(name, { ...view, ...news });
  };
  let shut = (): void => undefined;
  await supervise({
    log,
    signal,
    onState: (state) => {
      const reason = 'reason' in state ? cut(cleanText(state.reason), sentence_chars_max) : null;
      const next_try_at = 'retry_ms' in state ? nowIso(state.retry_ms) : null;
      const isSame = drivers.get(name)?.state === state.state;
      const failures = (drivers.get(name)?.failures ?? 0) + (reason === null ? 0 : 1);
      show({ state: state.state, reason, next_try_at, failures, ...(isSame ? {} : { since: nowIso() }) });
      if (state.state === 'starting' || state.state === 'up') return;
      shut();
      // What the driver said of its devices is not known any more; why they are not served stays.
      show({ facts: {} });
      takers.delete(name);
      assets.lose(name, reason ?? texts.driver_stopped);
      kit.withdraw(name, reason);
    },
    run: async (signal, onUp) => {
      show({ runs: (drivers.get(name)?.runs ?? 0) + 1 });
      const onFacts = (facts: StatusFacts, devices: readonly DeviceReport[]): void =>
        show({ facts, devices });
      const onOptions = (take: TakeOptions): void => void takers.set(name, take);
      const { files } = parts;
      const state_dir = join(parts.state_dir, name);
      const door = openHost({
        name,
        driver,
        log,
        signal,
        assets,
        kit,
        files,
        state_dir,
        onUp,
        onFacts,
        onOptions,
      });
      shut = door.shut;
      await run(door.host);
    },
  });
}

function firstView(name: string, driver: Driver, since: string): DriverView {
  return {
    name,
    driver: driver.name,
    state: 'starting',
    since,
    reason: null,
    next_try_at: null,
    runs: 0,
    failures: 0,
    facts: {},
  };
}
