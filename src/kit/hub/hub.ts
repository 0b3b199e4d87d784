/** Runs the drivers, keeps the state of assets and kit that they report, and decides what goes to the outbox. */
import { join } from 'node:path';
import { cut, sentence_chars_max } from '../../contract/limits.ts';
import { cleanText } from '../../platform/foreign-text.ts';
import type { FeedSet } from '../../contract/feeds.ts';
import type {
  ConfiguredRun,
  DeviceReport,
  Driver,
  DriverHost,
  DriverLog,
} from '../../toolkit/driver/driver.ts';
import type { Health } from '../../toolkit/driver/health.ts';
import { CommandRefused } from '../../platform/errors.ts';
import type { Opened } from '../outbox/protocol.ts';
import type { AssetActivity } from './activity.ts';
import { AlarmPictures, type AlarmPicturesParts } from './assets/alarm-pictures.ts';
import { Assets, type AssetsParts } from './assets/assets.ts';
import { type DriverState, openHost, type StatusFacts, supervise } from './host.ts';
import { Kit, type KitOptions, type TelemetryPace } from './kit/kit.ts';
import { Clips, type Recordings } from './assets/clips.ts';
import { Pictures } from './assets/pictures.ts';
import { texts } from './texts.ts';
import { type FeedRates, Pacer } from './rate.ts';
import { type CityOf, KitLocation } from './kit/location.ts';

/** Beside the folders of the driver instances, whose names have no dot. */
const last_fix_file = 'last-fix.json';

/** Each part of the hub has its own needs; what the hub makes itself is not among them. */
export type HubOptions = Omit<AssetsParts, 'pacer' | 'pictures' | 'alarm_pictures' | 'clips'> &
  Omit<AlarmPicturesParts, 'pictures'> &
  Omit<KitOptions, 'kit_location' | 'onLocation' | 'gatewayId'> & {
    /** Holds a folder for each driver instance that keeps files. */
    readonly state_dir: string;
    readonly rates: FeedRates;
    readonly cityOf: CityOf;
    /** Path at the kit's service of the picture of an asset; undefined: there is no service, and no pictures. */
    readonly picturePath?: ((asset_id: string) => string) | undefined;
    /** The media server's; undefined: it does not record. */
    readonly recordings?: Recordings | undefined;
  };

interface DriverRun {
  /** Configured name of the instance. */
  readonly name: string;
  readonly driver: Driver;
  readonly run: ConfiguredRun;
  readonly log: DriverLog;
  readonly signal: AbortSignal;
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

export type Hub = ReturnType<typeof createHub>;

/**
 * Opens the hub. What an earlier run announced and this configuration does not contain is retracted at once; beside the
 * outbox and the clock none of the given functions is called before it returns.
 */
export function createHub(options: HubOptions) {
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
  const instances = new Map<string, Instance>();
  ready = true;

  return {
    /** Keeps the driver running. Resolves when it has stopped, was rejected by its device, or was abandoned. Never rejects. */
    runDriver: async (order: DriverRun) => runOne(order, { ...options, instances, assets, kit }),
    /**
     * Gives other options to a running driver (see `OnOptions`). Returns the devices that are tried again; undefined when the
     * driver must be restarted for them.
     */
    changeOptions: (name: string, raw: unknown) => instances.get(name)?.takeOptions?.(raw),
    /** Publishes every retained message and a whole kit snapshot again: for `down/sync` and for a broker that lost its memory. */
    announceAll() {
      assets.announceAgain();
      kit.announce();
    },
    /** Takes over what an earlier run left announced, when the buffer file could not be read at the start. */
    takeUp: (announced: Opened['announced']) => assets.takeUp(announced),
    /** Viewers find the stream of this asset elsewhere now. */
    streamChanged: (asset_key: string) => assets.streamChanged(asset_key),
    setRates: (rates: FeedRates) => pacer.setRates(rates),
    setTelemetry: (pace: TelemetryPace) => kit.setPace(pace),
    /** Local policy answers differently from now on. */
    policyChanged: () => assets.policyChanged(),
    /** Removes a driver instance that has stopped, and retracts what it announced. */
    retire(name: string) {
      instances.delete(name);
      assets.retire(name);
    },
    /** Monotonic time at which drivers and kit were last gone through, which happens every second. */
    ticked_ms: () => kit.ticked_ms,
    /** The command, live, or a sentence for the operator. The caller checks `asset.online`. */
    findCommand: (asset_id: string, command_name: string) => assets.find(asset_id, command_name),
    /** The commands that a task may call, as published. */
    commandsOf: (asset_id: string) => assets.definitions(asset_id),
    /** See `Pictures.of`. */
    async picture(asset_id: string, age_max_ms: number) {
      if (!pictures) throw new CommandRefused(texts.no_pictures);
      return pictures.of(assets.named(asset_id), assets.find(asset_id, 'snapshot'), age_max_ms);
    },
    assets: () => assets.view(),
    /** Forgets an asset that is gone for good; answers why it stays. */
    forgetAsset: (asset_id: string) => assets.forget(asset_id),
    /** What people and the log know an asset by. */
    assetNamed: (asset_id: string) => assets.named(asset_id)?.observed(),
    /** Asks the camera that the asset is, where it can, for a key frame of its stream. */
    requestKeyFrame: async (asset_id: string) => assets.named(asset_id)?.requestKeyFrame?.(),
    drivers: (): readonly DriverView[] => Array.from(instances.values(), ({ view }) => view),
    kit: () => kit.view(),
    /** The links, each with the reason of its state. */
    links: () => kit.links(),
    /** The data cap of a link, as it was reported last. */
    dataCap: (link: string | undefined) => kit.dataCap(link),
    /** Age and driver of the kit's location, and why it is not better. */
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

/** A driver instance. */
interface Instance {
  view: DriverView;
  /** Undefined: it does not run, or takes no other options while it does. */
  takeOptions: Parameters<DriverHost<FeedSet>['onOptions']>[0] | undefined;
}

/** What a driver's run works on. */
interface RunParts extends Pick<HubOptions, 'clock' | 'state_dir' | 'files'> {
  readonly instances: Map<string, Instance>;
  readonly assets: Assets;
  readonly kit: Kit;
}

async function runOne({ name, driver, run, log, signal }: DriverRun, parts: RunParts): Promise<void> {
  const { instances, assets, kit, clock, files } = parts;
  const nowIso = (ahead_ms = 0): string => new Date(clock.stamp().time_ms + ahead_ms).toISOString();
  const instance: Instance = { view: firstView(name, driver, nowIso()), takeOptions: undefined };
  instances.set(name, instance);
  const show = (news: Partial<DriverView>): void => {
    instance.view = { ...instance.view, ...news };
  };
  let shut = (): void => undefined;
  await supervise({
    log,
    signal,
    onState: (state) => {
      const reason = 'reason' in state ? cut(cleanText(state.reason), sentence_chars_max) : null;
      const next_try_at = 'retry_ms' in state ? nowIso(state.retry_ms) : null;
      const isSame = instance.view.state === state.state;
      const failures = instance.view.failures + (reason === null ? 0 : 1);
      show({ state: state.state, reason, next_try_at, failures, ...(isSame ? {} : { since: nowIso() }) });
      if (state.state === 'starting' || state.state === 'up') return;
      shut();
      // What the driver said of its devices is not known any more; why they are not served stays.
      show({ facts: {} });
      instance.takeOptions = undefined;
      assets.lose(name, reason ?? texts.driver_stopped);
      kit.withdraw(name, reason);
    },
    run: async (signal, onUp) => {
      show({ runs: instance.view.runs + 1 });
      const door = openHost({
        name,
        driver,
        log,
        signal,
        assets,
        kit,
        files,
        state_dir: join(parts.state_dir, name),
        onUp,
        onFacts: (facts, devices) => show({ facts, devices }),
        onOptions: (take) => (instance.takeOptions = take),
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
