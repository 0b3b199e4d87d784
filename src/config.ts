/** Reads the configuration: the YAML file and the secrets it names, checked as a whole, frozen, in the units of the code. */
import { join } from 'node:path';
import { type BrokerOptions, readBroker } from './config/broker.ts';
import { type DriverInstance, type DriverList, configureDrivers } from './config/drivers.ts';
import { addIssues, didYouMean } from './config/faults.ts';
import { groupId } from './config/group.ts';
import { type MediaServerConfig, readMedia } from './config/media.ts';
import { type ConfigFile, type LogLevel, configFile, runtime_dir_default } from './config/schema.ts';
import { type ServiceConfig, serviceOf } from './config/service.ts';
import { type FaultList, type Source, faultList, parseSource, readSource } from './config/source.ts';
import { telemetryOf } from './config/telemetry.ts';
import type { RiskLevel } from './contract/assets.ts';
import { edgeEvents, publishedFeeds } from './contract/feeds.ts';
import type { LinkType } from './contract/kit.ts';
import { ConfigInvalid } from './errors.ts';

export const config_file_default = '/etc/kit-connector/config.yaml';

export interface Config {
  /** The file as it was named. */
  readonly file: string;
  /** Sentences on what works and should not stay as it is. */
  readonly warnings: readonly string[];
  /** Lower case. */
  readonly kit_id: string;
  readonly kit_name: string | undefined;
  readonly state_dir: string;
  readonly runtime_dir: string;
  readonly control_socket: string;
  /** Group of the control socket; undefined: the group of the process. */
  readonly socket_gid: number | undefined;
  /** Undefined: the file names none, and an embedded broker is to be started. */
  readonly broker: BrokerOptions | undefined;
  readonly uplink: {
    readonly window_messages: number;
    /** 0: every live message leaves on its own. */
    readonly packet_ms: number;
    readonly metered: readonly LinkType[];
    /** 0: no cap. Every type of link has its value. */
    readonly backlog_bytes_per_s: Readonly<Record<LinkType | 'default', number>>;
  };
  readonly outbox: {
    readonly bytes_max: number;
    readonly rows_max: number;
    readonly free_bytes_min: number;
    readonly age_max_ms: number;
  };
  readonly feeds: {
    /** Messages a second and asset, by feed. */
    readonly rates_hz: Readonly<Record<string, number>>;
    /** For the feeds that are not in `rates_hz`. */
    readonly rate_default_hz: number;
  };
  /** Undefined: no media server, and no camera has a `whep_url`. */
  readonly media: MediaServerConfig | undefined;
  /** Undefined: the kit serves no page and no interface of its own. */
  readonly service: ServiceConfig | undefined;
  readonly telemetry: ReturnType<typeof telemetryOf>;
  readonly commands: {
    /** `*` stands for every asset, every command. */
    readonly disabled: readonly { readonly asset: string; readonly command: string }[];
    readonly max_risk: RiskLevel;
  };
  /** Undefined: no figures for Prometheus. */
  readonly metrics: { readonly listen: { readonly host: string; readonly port: number } } | undefined;
  readonly log: { readonly level: LogLevel; readonly drivers: Readonly<Record<string, LogLevel>> };
  readonly drivers: readonly DriverInstance[];
}

export interface ConfigSources {
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
  const faults = faultList(source);
  const read = configFile.safeParse(source.value);
  if (!read.success)
    addIssues(faults, { schema: configFile, value: source.value, at: [] }, read.error.issues);

  const sections = readableSections(source.value);
  const warnings: string[] = [];
  const { credentials_dir } = sources;
  const broker =
    sections.broker &&
    (await readBroker(sections.broker, sections.kit_id, { source, faults, warnings, credentials_dir }));
  const media = sections.media && (await readMedia(sections.media, source, faults));
  const drivers = await configureDrivers(sections.drivers, sources.drivers, faults);
  const socket_gid = await socketGroup(sections.socket_group, faults);
  checkFeedNames(sections.rates_hz, drivers, faults);
  checkLogNames(sections.log_drivers, drivers, faults);

  const lines = faults.lines();
  if (!read.success || lines.length > 0) throw new ConfigInvalid(lines);
  const data = deepFreeze({ ...inUnits(source, read.data), broker, media, socket_gid, warnings });
  return Object.freeze({ ...data, drivers: Object.freeze(drivers) });
}

/** Where the daemon listens that runs with this file; faults elsewhere in the file do not matter. */
export async function readControlSocket(file: string): Promise<string> {
  const { value } = parseSource(file, await readSource(file));
  const { runtime_dir } = configFile.pick({ runtime_dir: true }).strip().safeParse(value).data ?? {};
  return controlSocket(runtime_dir ?? runtime_dir_default);
}

export function controlSocket(runtime_dir: string): string {
  return join(runtime_dir, 'control.sock');
}

/** What can be checked further although another section may have a fault. */
function readableSections(value: unknown) {
  const shape = configFile.shape;
  const raw: Readonly<Record<string, unknown>> =
    typeof value === 'object' && value !== null ? { ...value } : {};
  return {
    kit_id: shape.kit_id.safeParse(raw['kit_id']).data ?? '',
    broker: shape.broker.safeParse(raw['broker']).data,
    media: shape.media.safeParse(raw['media']).data,
    socket_group: shape.socket_group.safeParse(raw['socket_group']).data,
    rates_hz: shape.feeds.safeParse(raw['feeds']).data?.rates_hz ?? {},
    log_drivers: shape.log.safeParse(raw['log']).data?.drivers ?? {},
    drivers: raw['drivers'],
  };
}

async function socketGroup(name: string | undefined, faults: FaultList): Promise<number | undefined> {
  if (name === undefined) return undefined;
  const gid = await groupId(name);
  if (gid === undefined) {
    faults.add(
      ['socket_group'],
      `there is no group "${name}" on this machine; create it (groupadd --system ${name}) or remove the key`,
    );
  }
  return gid;
}

/** A rate for a feed that nobody publishes is a slip of the pen. */
function checkFeedNames(
  rates_hz: Readonly<Record<string, number>>,
  drivers: readonly DriverInstance[],
  faults: FaultList,
): void {
  const feedSets = [
    ...Object.values(publishedFeeds),
    edgeEvents,
    ...drivers.map(({ driver }) => driver.feeds),
  ];
  const known = [...new Set(['default', ...feedSets.flatMap((feeds) => Object.keys(feeds))])];
  for (const name of Object.keys(rates_hz)) {
    if (known.includes(name)) continue;
    const guess = didYouMean(name, known);
    faults.add(
      ['feeds', 'rates_hz', name],
      `there is no feed of this name; ${guess ? `did you mean "${guess}"?` : `the feeds are ${known.join(', ')}`}`,
    );
  }
}

function checkLogNames(
  levels: Readonly<Record<string, LogLevel>>,
  drivers: readonly DriverInstance[],
  faults: FaultList,
): void {
  const known = drivers.map(({ name }) => name);
  for (const name of Object.keys(levels)) {
    if (known.includes(name)) continue;
    const guess = didYouMean(name, known);
    faults.add(
      ['log', 'drivers', name],
      `no driver of this name is configured; ${guess ? `did you mean "${guess}"?` : 'remove the line'}`,
    );
  }
}

/** Where browsers find the kit's media server. */
function viewerUrl({ media }: ConfigFile): string | undefined {
  if (media === undefined) return undefined;
  return media.server === 'template' ? media.url : media.viewer_url;
}

/** The same in the units of the code. */
function inUnits(source: Source, file: ConfigFile) {
  const { default: rate_default_hz = 5, ...rates_hz } = file.feeds.rates_hz;
  const { backlog_kbps, ...uplink } = file.uplink;
  return {
    file: source.file,
    kit_id: file.kit_id.toLowerCase(),
    kit_name: file.kit_name,
    state_dir: file.state_dir,
    runtime_dir: file.runtime_dir,
    control_socket: controlSocket(file.runtime_dir),
    uplink: { ...uplink, backlog_bytes_per_s: backlogCaps(backlog_kbps) },
    outbox: {
      bytes_max: file.outbox.bytes_max_mb * 1e6,
      rows_max: file.outbox.rows_max,
      free_bytes_min: file.outbox.free_disk_min_mb * 1e6,
      age_max_ms: file.outbox.age_max_days * 86_400_000,
    },
    feeds: { rates_hz, rate_default_hz },
    telemetry: telemetryOf(file.telemetry),
    service: file.service && serviceOf(file.service, viewerUrl(file)),
    commands: file.commands,
    metrics: file.metrics && { listen: splitListen(file.metrics.listen) },
    log: file.log,
  };
}

/** `host:port`, an IPv6 host in brackets. */
function splitListen(text: string): { readonly host: string; readonly port: number } {
  const at = text.lastIndexOf(':');
  return { host: text.slice(0, at).replace(/^\[(.*)\]$/, '$1'), port: Number(text.slice(at + 1)) };
}

function backlogCaps(kbps: ConfigFile['uplink']['backlog_kbps']): Config['uplink']['backlog_bytes_per_s'] {
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
