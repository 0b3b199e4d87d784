/** The configuration file of the service that runs alone: broker, database, and where it listens. */
import { randomBytes } from 'node:crypto';
import { basename, dirname, resolve } from 'node:path';
import { z } from 'zod';
import { fileKind, type FileKind } from '../../contract/files.ts';
import { ConfigInvalid } from '../../platform/errors.ts';
import { addressesOf } from '../../platform/host-list.ts';
import { type BrokerConfig, readBroker } from './broker.ts';
import type { BrokerContext } from './broker-secrets.ts';
import { addIssues } from './faults.ts';
import { type MetricsConfig, readMetrics } from './metrics.ts';
import { configFile, type LogLevel } from './schema.ts';
import { checkService, listenAt, origin, type ServiceConfig, serviceOf, serviceSection } from './service.ts';
import { isThisMachine } from '../../platform/networks.ts';
import { readSecret, readCertificates } from './secrets.ts';
import { type FaultList, faultList, parseSource, readSource } from './source.ts';
import { placeWarnings } from './state-place.ts';
import { texts } from './texts.ts';

// The queue of RabbitMQ from which the service takes the messages of kits, in place of a subscription of MQTT.

const url = z
  .string()
  .refine(
    (text) => /^amqps?:\/\/[^/]/u.test(text) && URL.canParse(text),
    'write it like amqps://rabbit.example.com:5671',
  )
  .refine((text) => {
    if (!URL.canParse(text)) return true;
    const { username, password, pathname, search } = new URL(text);
    return username === '' && password === '' && (pathname === '' || pathname === '/') && search === '';
  }, 'write scheme, host and port only; user, password and vhost have separate keys');

const word = z
  .string()
  .min(1)
  .max(127)
  .regex(/^[\w.:-]+$/u, 'write letters, digits, ".", ":", "-" and "_" only');

export const ingestSection = z.strictObject({
  amqp: z
    .strictObject({
      urls: z
        .array(url)
        .min(1)
        .max(16)
        .describe('nodes of the cluster, tried in turn: amqps://host:5671, or amqp://host:5672'),
      username: z.string().min(1).max(255).default('cloud').describe('user of RabbitMQ'),
      password_file: z.string().min(1).describe('file that holds its password and nothing else'),
      ca_file: z.string().min(1).optional().describe('PEM; the authority of the nodes, with amqps'),
      vhost: z.string().min(1).max(255).default('/').describe('virtual host'),
      queue: word
        .default('kit-service')
        .describe('quorum queue, made when missing; the same for all replicas'),
      exchange: word.default('amq.topic').describe('topic exchange of the MQTT plugin (its mqtt.exchange)'),
      prefetch: z
        .int()
        .min(10)
        .max(10_000)
        .default(500)
        .describe('messages that a replica holds without having stored them'),
    })
    .describe('RabbitMQ by AMQP 0-9-1'),
});

interface AmqpConfig {
  readonly urls: readonly string[];
  readonly username: string;
  readonly password: string;
  readonly ca: string | undefined;
  readonly vhost: string;
  readonly queue: string;
  readonly exchange: string;
  readonly prefetch: number;
}

/** Reads the files that the section names. Undefined when a fault was added. */
export async function readAmqp(
  { amqp }: z.output<typeof ingestSection>,
  dir: string,
  { faults, warnings }: { readonly faults: FaultList; readonly warnings: string[] },
): Promise<AmqpConfig | undefined> {
  const { password_file, ca_file, ...rest } = amqp;
  const at = (key: string): string[] => ['ingest', 'amqp', key];
  const password = await readSecret(resolve(dir, password_file), { secret: true });
  if ('fault' in password) faults.add(at('password_file'), password.fault);
  const ca = ca_file === undefined ? undefined : await readAuthority(resolve(dir, ca_file));
  if (ca && 'fault' in ca) faults.add(at('ca_file'), ca.fault);
  checkTransport(amqp, { faults, warnings });
  if ('fault' in password || (ca && 'fault' in ca)) return undefined;
  return { ...rest, password: password.value.replace(/\r?\n$/u, ''), ca: ca?.value };
}

async function readAuthority(file: string): ReturnType<typeof readSecret> {
  const read = await readSecret(file, { secret: false });
  if ('fault' in read) return read;
  const certificates = readCertificates(file, read.value);
  return 'fault' in certificates ? certificates : read;
}

/** What makes no sense without encryption. */
function checkTransport(
  { urls, ca_file }: z.output<typeof ingestSection>['amqp'],
  { faults, warnings }: { readonly faults: FaultList; readonly warnings: string[] },
): void {
  const isPlain = (each: string): boolean => each.startsWith('amqp:');
  const open = urls.find((each) => isPlain(each) && !isThisMachine(new URL(each).hostname));
  if (open !== undefined) warnings.push(texts.password_in_clear(open, texts.write_amqps));
  if (ca_file !== undefined && urls.every(isPlain))
    faults.add(['ingest', 'amqp', 'ca_file'], texts.amqp_no_effect_without_tls);
}

export const standalone_file_default = '/etc/kit-connector-service/service.yaml';
/** The user name of the cloud's side in the samples of the brokers' rules. */
const username_default = 'cloud';

const iceUrl = (schemes: RegExp, example: string) =>
  z.string().max(512).regex(schemes, `is not such an address; write it like ${example}`);
const turn_secret_chars_min = 16;

const videoSection = z
  .strictObject({
    stun: z
      .array(iceUrl(/^stuns?:[^\s@<>"]+$/u, 'stun:turn.example.com:3478'))
      .max(8)
      .default([])
      .describe('STUN servers for viewers, such as stun:turn.example.com:3478'),
    turn: z
      .strictObject({
        urls: z
          .array(iceUrl(/^turns?:[^\s@<>"]+$/u, 'turn:turn.example.com:3478?transport=udp'))
          .min(1)
          .max(8)
          .describe(
            'one for each way, such as turn:turn.example.com:3478?transport=udp and the same with transport=tcp, or turns:turn.example.com:443?transport=tcp',
          ),
        secret_file: z
          .string()
          .min(1)
          .describe('holds the static-auth-secret of coturn (use-auth-secret) and nothing else'),
        ttl_s: z
          .int()
          .min(60)
          .max(86_400)
          .default(3_600)
          .describe('seconds in which a viewer may begin to use its credentials'),
      })
      .optional()
      .describe('TURN server, for viewers and kits behind networks that let no other way through'),
  })
  .prefault({})
  .describe('servers that help viewers to reach the video of kits');

const file_days = z.number().positive().max(4_000);
const filesSection = z.strictObject({
  url: origin.describe(
    'where kits reach this service, such as https://kits.example.com; they take http for their own machine only',
  ),
  dir: z
    .string()
    .min(1)
    .default('/var/lib/kit-connector-service/files')
    .describe('folder of the contents; replicas share it'),
  max_gb: z
    .number()
    .positive()
    .max(1_000_000)
    .default(50)
    .describe('size of all contents; beyond it the oldest are deleted'),
  days: z
    .strictObject({
      default: file_days.default(90).describe('days of a kind that is not named'),
      ...Object.fromEntries(
        fileKind.options.map((kind) => [
          kind,
          file_days.optional().describe(`days of files of the kind ${kind}; left out: those of default`),
        ]),
      ),
    })
    .prefault({})
    .describe('days that contents are kept, by kind'),
});

const days = (usual: number) => z.int().min(1).max(4_000).default(usual);

const standaloneFile = serviceSection.extend({
  history: z
    .union([
      z.literal('off'),
      z.strictObject({
        events_days: days(400).describe('days that events, tasks and presence are kept'),
        positions_days: days(30).describe('days that positions are kept'),
        feeds_days: days(30).describe('days that the messages of other feeds are kept'),
        kits_days: days(90).describe('days that the telemetry of kits is kept'),
        figures_days: days(400).describe(
          'days that the figures for ten minutes are kept, of which charts over weeks are drawn',
        ),
        kit_max_mb: z.int().min(1).optional().describe('size of the messages of one kit; left out: no limit'),
      }),
    ])
    .prefault({})
    .describe('what the page and the API show of the past; off: only the newest values'),
  broker: configFile.shape.broker
    .unwrap()
    .omit({ urls: true, redirect_to: true })
    .optional()
    .describe('the MQTT broker; username: "cloud" when left out'),
  ingest: ingestSection
    .optional()
    .describe('in place of broker: messages of kits from a queue of RabbitMQ, to which kits publish by MQTT'),
  files: filesSection
    .optional()
    .describe('files of kits: stills, flight logs and the like; left out: none are taken'),
  video: videoSection,
  client_id: z
    .string()
    .min(1)
    .max(64)
    .default('kit-service')
    .describe(
      'of MQTT; the same at each start, and no other client has it; replicas have it with a random end',
    ),
  share: z
    .string()
    .regex(/^[\w-]{1,64}$/u, 'write letters, digits, "-" and "_" only')
    .optional()
    .describe(
      'for replicas: name of their shared subscription, the same for all of them; each message goes to one. Needs PostgreSQL',
    ),
  database: z
    .string()
    .min(1)
    .default('/var/lib/kit-connector-service/service.db')
    .describe(
      'SQLite file, made when it is missing; or postgres://user@host:5432/name, of several servers postgres://user@one:5432,two:5432/name: the one that takes writes is used',
    ),
  database_replicated: z
    .boolean()
    .optional()
    .describe(
      'PostgreSQL has standbys: warn whenever commits do not wait for one. Left out: warn when standbys are connected',
    ),
  database_password_file: z
    .string()
    .min(1)
    .optional()
    .describe('file that holds the password of PostgreSQL and nothing else'),
  first_key_file: z
    .string()
    .min(1)
    .optional()
    .describe(
      'file that holds an API key and nothing else (chmod 640), such as a secret of a container: taken at a start that finds no key, with all rights to all kits',
    ),
  metrics: configFile.shape.metrics,
  log: configFile.shape.log,
  doctor: configFile.shape.doctor,
});

type DatabaseConfig =
  | { readonly kind: 'sqlite'; readonly file: string }
  | {
      readonly kind: 'postgres';
      readonly url: string;
      readonly password: string | undefined;
      readonly isReplicated: boolean;
    };

/** How long the history is kept. */
interface HistoryConfig {
  /** By class of messages. */
  readonly days: Readonly<Record<'event' | 'position' | 'feed' | 'kit', number>>;
  readonly figures_days: number;
  /** Of the messages of one kit; undefined: no limit. */
  readonly kit_bytes_max: number | undefined;
}

export interface StandaloneConfig extends ServiceConfig {
  /** Undefined: no history is kept. */
  readonly retention: HistoryConfig | undefined;
  /** Undefined: `amqp` has the messages. */
  readonly broker: BrokerConfig | undefined;
  readonly amqp: AmqpConfig | undefined;
  readonly client_id: string;
  readonly share: string | undefined;
  /** Undefined: no contents of files are kept. */
  readonly files:
    | {
        readonly dir: string;
        readonly url: string;
        readonly bytes_max: number;
        readonly days: Readonly<Partial<Record<FileKind, number>>> & { readonly default: number };
      }
    | undefined;
  readonly video_settings: {
    readonly stun: readonly string[];
    readonly turn:
      | { readonly urls: readonly string[]; readonly secret: string; readonly ttl_s: number }
      | undefined;
  };
  readonly database: DatabaseConfig;
  /** The API key for a database without any, and the file that holds it. */
  readonly first_key: { readonly file: string; readonly text: string } | undefined;
  /** Undefined: no metrics. */
  readonly metrics: MetricsConfig | undefined;
  readonly log: { readonly level: LogLevel; readonly drivers: Readonly<Record<string, LogLevel>> };
  readonly doctor: { readonly accepted: readonly string[] };
  /** Sentences on what works and should not stay as it is. */
  readonly warnings: readonly string[];
}

/**
 * Returns whether the file is one of the service that runs alone: it has keys that the daemon's file does not have, and none of
 * the daemon's. Throws `ConfigInvalid` when it cannot be read.
 */
export async function isStandaloneFile(file: string): Promise<boolean> {
  const { value } = parseSource(file, await readSource(file));
  const keys = Object.keys(z.record(z.string(), z.unknown()).parse(value));
  const daemon: readonly string[] = Object.keys(configFile.shape);
  const service: readonly string[] = Object.keys(standaloneFile.shape);
  const isOnlyOf = (mine: readonly string[], other: readonly string[]): boolean =>
    keys.some((key) => mine.includes(key) && !other.includes(key));
  if (isOnlyOf(daemon, service)) return false;
  return isOnlyOf(service, daemon) || basename(file) === basename(standalone_file_default);
}

/** JSON Schema of the file. */
export function standaloneJsonSchema(): z.core.JSONSchema.BaseSchema {
  return z.toJSONSchema(standaloneFile, { target: 'draft-7', io: 'input' });
}

/** Reads the file and the secrets it names. Throws `ConfigInvalid` with every fault that was found. */
export async function readStandalone(
  file: string,
  credentials_dir: string | undefined,
): Promise<StandaloneConfig> {
  const source = parseSource(file, await readSource(file));
  const faults = faultList(source);
  const read = standaloneFile.safeParse(source.value);
  if (!read.success)
    addIssues(faults, { schema: standaloneFile, value: source.value, at: [] }, read.error.issues);
  const warnings: string[] = [];
  const context = { source, faults, warnings, credentials_dir };
  const others = read.data && (await filesOf(read.data, file, context));
  const dir = dirname(file);
  if (read.data) await checkService(read.data, { dir }, { faults, warnings, at: [] });
  const metrics = await readMetrics(read.data?.metrics, { dir, faults, warnings });
  const first_key = await readFirstKey(read.data?.first_key_file, dir, faults);
  const lines = faults.lines();
  if (!read.success || !others || lines.length > 0) throw new ConfigInvalid(lines);
  const { client_id, share, log, doctor } = read.data;
  const service = serviceOf(read.data, { dir });
  const files = contentsOf(read.data.files, dir);
  return {
    ...service,
    // Kits name it by this host.
    hosts: [...new Set([...service.hosts, ...(files ? [new URL(files.url).hostname] : [])])],
    files,
    retention: retentionOf(read.data.history),
    ...others,
    // A replica keeps no session at the broker: it may be another one each time.
    client_id: share === undefined ? client_id : `${client_id}-${randomBytes(4).toString('hex')}`,
    share,
    first_key,
    metrics,
    log,
    doctor,
    warnings,
  };
}

function contentsOf(
  section: z.output<typeof standaloneFile>['files'],
  dir: string,
): StandaloneConfig['files'] {
  if (!section) return undefined;
  const { max_gb, ...rest } = section;
  return { ...rest, dir: resolve(dir, section.dir), bytes_max: max_gb * 1e9 };
}

/** What stands in other files. Undefined when a fault was added. */
async function filesOf(
  data: z.output<typeof standaloneFile>,
  file: string,
  context: BrokerContext,
): Promise<Pick<StandaloneConfig, 'broker' | 'amqp' | 'database' | 'video_settings'> | undefined> {
  const { faults, warnings } = context;
  const from = await originOf(data, file, context);
  const database = await databaseOf(data, dirname(file), faults);
  const video_settings = await videoOf(data.video, dirname(file), faults);
  warnings.push(...(await databaseWarnings(database)));
  return from && database && video_settings && { ...from, database, video_settings };
}

/** Reads the secret of the TURN server. Undefined when a fault was added. */
async function videoOf(
  { stun, turn }: z.output<typeof videoSection>,
  dir: string,
  faults: FaultList,
): Promise<StandaloneConfig['video_settings'] | undefined> {
  if (!turn) return { stun, turn: undefined };
  const { secret_file, ...rest } = turn;
  const at = ['video', 'turn', 'secret_file'];
  const read = await readSecret(resolve(dir, secret_file), { secret: true });
  if ('fault' in read) {
    faults.add(at, read.fault);
    return undefined;
  }
  const secret = read.value.trim();
  if (secret.length >= turn_secret_chars_min) return { stun, turn: { ...rest, secret } };
  faults.add(at, texts.turn_secret_short(turn_secret_chars_min));
  return undefined;
}

/** Where the messages of kits come from. Undefined when a fault was added. */
async function originOf(
  { broker, ingest, share }: z.output<typeof standaloneFile>,
  file: string,
  context: BrokerContext,
): Promise<Pick<StandaloneConfig, 'broker' | 'amqp'> | undefined> {
  const { faults } = context;
  if (ingest) {
    if (broker) faults.add(['ingest'], texts.two_sources);
    if (share !== undefined) faults.add(['share'], texts.share_with_queue);
    const amqp = await readAmqp(ingest, dirname(file), context);
    return amqp && { broker: undefined, amqp };
  }
  if (!broker) {
    faults.add([], texts.no_source);
    return undefined;
  }
  const read = await readBroker(broker, username_default, context);
  return read && { broker: read, amqp: undefined };
}

async function readFirstKey(
  file: string | undefined,
  dir: string,
  faults: FaultList,
): Promise<StandaloneConfig['first_key']> {
  if (file === undefined) return undefined;
  const read = await readSecret(resolve(dir, file), { secret: true });
  if ('value' in read) return { file, text: read.value.trim() };
  faults.add(['first_key_file'], read.fault);
  return undefined;
}

function retentionOf(history: z.output<typeof standaloneFile>['history']): HistoryConfig | undefined {
  if (history === 'off') return undefined;
  const { events_days, positions_days, feeds_days, kits_days, figures_days, kit_max_mb } = history;
  return {
    days: { event: events_days, position: positions_days, feed: feeds_days, kit: kits_days },
    figures_days,
    kit_bytes_max: kit_max_mb === undefined ? undefined : kit_max_mb * 1_000_000,
  };
}

/**
 * The database that a file names, for the commands that manage keys; faults elsewhere do not matter. `named`: another one,
 * a file or an address. Throws `ConfigInvalid`.
 */
export async function readDatabase(file: string, named: string | undefined): Promise<DatabaseConfig> {
  if (named !== undefined && !isPostgres(named)) return { kind: 'sqlite', file: resolve(named) };
  const source =
    named === undefined ? parseSource(file, await readSource(file)) : parseSource('--database', '{}');
  const faults = faultList(source);
  const parts = standaloneFile
    .pick({ database: true, database_password_file: true, database_replicated: true })
    .strip();
  const section = parts.parse(named === undefined ? source.value : { database: named });
  const database = await databaseOf(section, dirname(file), faults);
  const lines = faults.lines();
  if (!database || lines.length > 0) throw new ConfigInvalid(lines);
  return database;
}

/** Where the service listens that runs with this file; faults elsewhere in the file do not matter. */
export async function readListen(
  file: string,
): Promise<{ readonly host: string; readonly port: number; readonly isSecure: boolean }> {
  const { value } = parseSource(file, await readSource(file));
  const { listen, tls } =
    standaloneFile.pick({ listen: true, tls: true }).strip().safeParse(value).data ?? {};
  const { host, port } = listenAt(listen ?? '') ?? { host: '127.0.0.1', port: 8080 };
  return { host, port, isSecure: tls !== undefined };
}

async function databaseWarnings(database: DatabaseConfig | undefined): Promise<readonly string[]> {
  return database?.kind === 'sqlite' ? placeWarnings('database', dirname(database.file)) : [];
}

type DatabaseSection = Pick<
  z.output<typeof standaloneFile>,
  'database' | 'database_password_file' | 'database_replicated'
> & {
  readonly share?: string | undefined;
};

/** Undefined when a fault was added. */
async function databaseOf(
  { database, database_password_file, database_replicated: isReplicated = false, share }: DatabaseSection,
  dir: string,
  faults: FaultList,
): Promise<DatabaseConfig | undefined> {
  if (!isPostgres(database)) {
    if (share !== undefined) {
      faults.add(['share'], texts.share_without_postgres);
    }
    if (isReplicated) faults.add(['database_replicated'], texts.replicated_sqlite);
    return { kind: 'sqlite', file: resolve(dir, database) };
  }
  const servers = addressesOf(database);
  if (!servers.every((each) => URL.canParse(each) && !holdsPassword(new URL(each)))) {
    faults.add(['database'], texts.no_database_address);
    return undefined;
  }
  const postgres = { kind: 'postgres' as const, url: database, isReplicated };
  if (database_password_file === undefined) return { ...postgres, password: undefined };
  const read = await readSecret(resolve(dir, database_password_file), { secret: true });
  if ('fault' in read) {
    faults.add(['database_password_file'], read.fault);
    return undefined;
  }
  return { ...postgres, password: read.value.replace(/\r?\n$/u, '') };
}

function holdsPassword({ password, searchParams }: URL): boolean {
  return password !== '' || searchParams.has('password');
}

function isPostgres(database: string): boolean {
  return /^postgres(?:ql)?:/u.test(database);
}
