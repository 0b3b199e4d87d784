/** Reads the configuration: the YAML file and the secrets it names, checked as a whole, frozen, in the units of the code. */
import { dirname, join, resolve } from 'node:path';
import { type BrokerConfig, readBroker } from './broker.ts';
import { type DriverInstance, type DriverList, configureDrivers } from './drivers.ts';
import { addIssues, refuseUnknown } from './faults.ts';
import { copyWarning, identityFiles, no_kit_id, readKitId } from './identity.ts';
import { placeWarnings } from './state-place.ts';
import { type MediaServerConfig, readMedia } from './media.ts';
import { type MetricsConfig, readMetrics } from './metrics.ts';
import { type ConfigFile, configFile, runtime_dir_default } from './schema.ts';
import { checkService, ownServiceOf } from './service.ts';
import { soundPart } from './sound-part.ts';
import { type FaultList, parseSource, readSource, reading, type Source } from './source.ts';
import { telemetryOf } from './telemetry.ts';
import { edgeEvents, publishedFeeds } from '../../contract/feeds.ts';
import type { LinkType } from '../../contract/kit.ts';
import { ConfigInvalid, messageOf } from '../../platform/errors.ts';
import { texts } from './texts.ts';
import { readTextUpTo, table_bytes_max } from '../../platform/bounded-file.ts';

export const config_file_default = '/etc/kit-connector/config.yaml';

export type Config = Readonly<ReturnType<typeof inUnits>> & {
  /** Sentences on what works and should not stay as it is. */
  readonly warnings: readonly string[];
  /** Lower case; `no_kit_id` before the first start of a kit whose configuration leaves it out. */
  readonly kit_id: string;
  /** Group of the control socket; undefined: the group of the process. */
  readonly socket_gid: number | undefined;
  /** Undefined: the file names none, and an embedded broker is to be started. */
  readonly broker: BrokerConfig | undefined;
  /** Undefined: no media server, and no camera has a `whep_url`. */
  readonly media: MediaServerConfig | undefined;
  /** Undefined: no figures for Prometheus. */
  readonly metrics: MetricsConfig | undefined;
  readonly drivers: readonly DriverInstance[];
};

interface ConfigSources {
  readonly drivers: DriverList;
  /** `$CREDENTIALS_DIRECTORY` of systemd: may hold mqtt-password, mqtt-ca, mqtt-cert, mqtt-key. */
  readonly credentials_dir: string | undefined;
}

/**
 * Reads the file, the secrets it names and the options of its drivers, without touching a device or the network.
 * Throws `ConfigInvalid` with every fault that was found, each `file:line:col key.path: what is wrong; remedy`.
 */
export async function readConfig(file: string, sources: ConfigSources): Promise<Config> {
  const source = parseSource(file, await readSource(file));
  const found = reading(source, sources.credentials_dir);
  const { faults, warnings } = found;
  const read = configFile.safeParse(source.value);
  if (!read.success)
    addIssues(faults, { schema: configFile, value: source.value, at: [] }, read.error.issues);

  const sections = readableSections(source.value);
  const kit_id = sections.kit_id ?? (await ownId(sections, faults));
  warnings.push(...(await stateWarnings(kit_id, sections.state_dir)));
  const broker = sections.broker && (await readBroker(sections.broker, kit_id, found));
  const media = sections.media && (await readMedia(sections.media, found));
  const { service } = sections;
  const media_url = viewerUrl(sections.media);
  if (service) await checkService(service, { at: ['service'], media_url, reading: found });
  const metrics = await readMetrics(sections.metrics, found);
  const drivers = await configureDrivers(sections.drivers, sources.drivers, faults);
  const socket_gid = await socketGroup(sections.socket_group, faults);
  checkNames(sections, drivers, faults);

  const lines = faults.lines();
  if (!read.success || lines.length > 0) throw new ConfigInvalid(lines);
  const parts = { kit_id, broker, media, metrics, socket_gid, warnings };
  const data = deepFreeze({ ...inUnits(source, read.data), ...parts });
  return Object.freeze({ ...data, drivers: Object.freeze(drivers) });
}

/** Where the daemon listens that runs with this file; faults elsewhere in the file do not matter. */
export async function readControlSocket(file: string): Promise<string> {
  const { value } = parseSource(file, await readSource(file));
  const { runtime_dir } = configFile.pick({ runtime_dir: true }).strip().safeParse(value).data ?? {};
  return controlSocket(runtime_dir ?? runtime_dir_default);
}

/** Where its state lies, and whether it names the kit; faults elsewhere in the file do not matter. */
export async function readStatePlace(
  file: string,
): Promise<{ readonly state_dir: string; readonly hasOwnId: boolean }> {
  const { value } = parseSource(file, await readSource(file));
  const { state_dir } = configFile.pick({ state_dir: true }).strip().safeParse(value).data ?? {};
  const hasOwnId = typeof value === 'object' && value !== null && 'kit_id' in value;
  return { state_dir: state_dir ?? configFile.shape.state_dir.parse(undefined), hasOwnId };
}

export function controlSocket(runtime_dir: string): string {
  return join(runtime_dir, 'control.sock');
}

/** What can be checked further although other keys may have faults. */
function readableSections(value: unknown) {
  const shape = configFile.shape;
  const raw: Readonly<Record<string, unknown>> =
    typeof value === 'object' && value !== null ? { ...value } : {};
  return {
    kit_id: shape.kit_id.safeParse(raw['kit_id']).data?.toLowerCase(),
    hasId: raw['kit_id'] !== undefined,
    state_dir: shape.state_dir.safeParse(raw['state_dir']).data,
    broker: soundPart(shape.broker, raw['broker']),
    media: soundPart(shape.media, raw['media']),
    service: soundPart(shape.service, raw['service']),
    metrics: soundPart(shape.metrics, raw['metrics']),
    socket_group: shape.socket_group.safeParse(raw['socket_group']).data,
    rates_hz: {
      feeds: soundPart(shape.feeds, raw['feeds'])?.rates_hz ?? {},
      low_battery: soundPart(shape.low_battery, raw['low_battery'])?.rates_hz ?? {},
    },
    log_drivers: soundPart(shape.log, raw['log'])?.drivers ?? {},
    drivers: raw['drivers'],
  };
}

/** What the first start made; with a fault where it cannot be read, since the kit would get another one. */
async function ownId(
  { hasId, state_dir }: { readonly hasId: boolean; readonly state_dir: string | undefined },
  faults: FaultList,
): Promise<string> {
  if (hasId || state_dir === undefined) return no_kit_id;
  try {
    return (await readKitId(state_dir)) ?? no_kit_id;
  } catch (error) {
    faults.add(['kit_id'], texts.id_unreadable(identityFiles(state_dir).id, messageOf(error)));
    return no_kit_id;
  }
}

async function stateWarnings(kit_id: string, state_dir: string | undefined): Promise<readonly string[]> {
  if (state_dir === undefined) return [];
  const copied = await copyWarning(state_dir);
  return [
    ...(kit_id === no_kit_id ? [texts.no_id_yet] : []),
    ...(copied === undefined ? [] : [copied]),
    ...(await placeWarnings('state_dir', state_dir)),
  ];
}

async function socketGroup(name: string | undefined, faults: FaultList): Promise<number | undefined> {
  if (name === undefined) return undefined;
  const gid = await groupId(name);
  if (gid === undefined) {
    faults.add(['socket_group'], texts.no_group(name));
  }
  return gid;
}

/** Names that have a rate or a level without being those of a feed or a driver. */
function checkNames(
  { rates_hz, log_drivers }: ReturnType<typeof readableSections>,
  drivers: readonly DriverInstance[],
  faults: FaultList,
): void {
  const known = feedsOf(drivers);
  const feed = { known, sentence: texts.no_feed, otherwise: texts.the_feeds_are(known) };
  for (const [section, rates] of Object.entries(rates_hz))
    for (const name of Object.keys(rates))
      refuseUnknown(name, { ...feed, at: [section, 'rates_hz', name] }, faults);
  const names = drivers.map(({ name }) => name);
  const driver = { known: names, sentence: texts.not_configured, otherwise: texts.remove_line };
  for (const name of Object.keys(log_drivers))
    refuseUnknown(name, { ...driver, at: ['log', 'drivers', name] }, faults);
}

/** All feeds that may have a rate. */
function feedsOf(drivers: readonly DriverInstance[]): readonly string[] {
  const sets = [...Object.values(publishedFeeds), edgeEvents, ...drivers.map(({ driver }) => driver.feeds)];
  return [...new Set(['default', ...sets.flatMap((feeds) => Object.keys(feeds))])];
}

/** Where browsers find the kit's media server. */
function viewerUrl(media: ConfigFile['media']): string | undefined {
  if (media === undefined) return undefined;
  return media.server === 'template' ? media.url : media.viewer_url;
}

/** The same in the units of the code. */
function inUnits(source: Source, file: ConfigFile) {
  const { default: rate_default_hz = 5, ...rates_hz } = file.feeds.rates_hz;
  const { backlog_kbps, ...uplink } = file.uplink;
  return {
    file: source.file,
    kit_name: file.kit_name,
    /** `trusted`: the time of day counts as right regardless of the kernel. */
    clock: file.clock,
    // Node.js makes folders of a relative path without end once the working directory was deleted.
    state_dir: resolve(file.state_dir),
    runtime_dir: file.runtime_dir,
    control_socket: controlSocket(file.runtime_dir),
    uplink: {
      ...uplink,
      /** 0: no cap. Every type of link has its value. */
      backlog_bytes_per_s: backlogCaps(backlog_kbps),
    },
    outbox: {
      bytes_max: file.outbox.bytes_max_mb * 1e6,
      rows_max: file.outbox.rows_max,
      free_bytes_min: file.outbox.free_disk_min_mb * 1e6,
      age_max_ms: file.outbox.age_max_days * 86_400_000,
    },
    /** For the cloud. */
    files: {
      bytes_max: file.files.bytes_max_mb * 1e6,
      age_max_ms: file.files.age_max_days * 86_400_000,
      free_bytes_min: file.outbox.free_disk_min_mb * 1e6,
      upload: file.files.upload,
      /** 0: no cap. */
      bytes_per_s: file.files.kbps_max * 125,
      stills: file.files.stills,
    },
    /** Messages a second and asset, by feed, and for the feeds that are not named. */
    feeds: { rates_hz, rate_default_hz },
    telemetry: telemetryOf(file.telemetry),
    /** Undefined: a low battery changes nothing. */
    low_battery: file.low_battery,
    video: file.video,
    /** Undefined: the kit serves no page and no API. */
    service:
      file.service &&
      ownServiceOf(file.service, { dir: dirname(source.file), media_url: viewerUrl(file.media) }),
    /** `*` stands for every asset, every command. */
    commands: file.commands,
    log: file.log,
    /** Of the command doctor; the daemon does not look at it. */
    doctor: file.doctor,
  };
}

function backlogCaps(
  kbps: ConfigFile['uplink']['backlog_kbps'],
): Readonly<Record<LinkType | 'default', number>> {
  const bytes = (link: LinkType): number => (kbps[link] ?? kbps.default) * 125;
  return {
    default: kbps.default * 125,
    satellite: bytes('satellite'),
    cellular: bytes('cellular'),
    ethernet: bytes('ethernet'),
    wifi: bytes('wifi'),
  };
}

/** Freezes objects and lists that hold nothing but data. */
function deepFreeze<T extends object>(value: T): Readonly<T> {
  const inner: readonly unknown[] = Object.values(value);
  for (const item of inner) {
    if (typeof item === 'object' && item !== null) deepFreeze(item);
  }
  return Object.freeze(value);
}

/** The number of a group of this machine; undefined when there is none of that name. */
async function groupId(name: string, groups_file = '/etc/group'): Promise<number | undefined> {
  const lines = (await readTextUpTo(groups_file, table_bytes_max).catch(() => '')).split('\n');
  const [, , gid] = lines.find((line) => line.startsWith(`${name}:`))?.split(':') ?? [];
  return gid === undefined ? undefined : Number(gid);
}
