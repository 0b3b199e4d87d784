/** The configuration file of the service that runs alone: broker, database, and where it listens. */
import { randomBytes } from 'node:crypto';
import { basename, dirname, resolve } from 'node:path';
import { z } from 'zod';
import { fileKind, type FileKind } from '../../contract/files.ts';
import { ConfigInvalid } from '../../platform/errors.ts';
import { addressesOf } from '../../platform/host-list.ts';
import { readBroker } from './broker.ts';
import { addIssues } from './faults.ts';
import { readMetrics } from './metrics.ts';
import { configFile } from './schema.ts';
import { checkService, listenAt, origin, serviceOf, serviceSection } from './service.ts';
import { isThisMachine } from '../../platform/networks.ts';
import { lineOf, namedSecret, readCertificates, readSecret } from './secrets.ts';
import { parseSource, readSource, type Reading, reading } from './source.ts';
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

/** Reads the files that the section names. */
export async function readAmqp({ amqp }: z.output<typeof ingestSection>, reading: Reading) {
  const { password_file, ca_file, ...rest } = amqp;
  const password = await namedSecret(password_file, ['ingest', 'amqp', 'password_file'], reading);
  const ca = ca_file === undefined ? undefined : await readAuthority(resolve(reading.dir, ca_file));
  if (ca && 'fault' in ca) reading.faults.add(['ingest', 'amqp', 'ca_file'], ca.fault);
  checkTransport(amqp, reading);
  return { ...rest, password: lineOf(password ?? ''), ca: ca && 'value' in ca ? ca.value : undefined };
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
  { faults, warnings }: Reading,
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

type StandaloneFile = z.output<typeof standaloneFile>;
export type StandaloneConfig = Awaited<ReturnType<typeof readStandalone>>;

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
export async function readStandalone(file: string, credentials_dir: string | undefined) {
  const source = parseSource(file, await readSource(file));
  const found = reading(source, credentials_dir);
  const { dir, faults, warnings } = found;
  const { data, error } = standaloneFile.safeParse(source.value);
  if (!data) {
    addIssues(faults, { schema: standaloneFile, value: source.value, at: [] }, error.issues);
    throw new ConfigInvalid(faults.lines());
  }
  const messages_of = await originOf(data, found);
  const database = await databaseOf(data, found);
  const video_settings = await videoOf(data.video, found);
  if (database.kind === 'sqlite') warnings.push(...(await placeWarnings('database', dirname(database.file))));
  await checkService(data, { at: [], reading: found });
  const service = serviceOf(data, { dir });
  const config = {
    ...service,
    // Kits name it by this host.
    hosts: [...new Set([...service.hosts, ...(data.files ? [new URL(data.files.url).hostname] : [])])],
    /** Undefined: no contents of files are kept. */
    files: contentsOf(data.files, dir),
    /** Undefined: no history is kept. */
    retention: retentionOf(data.history),
    ...messages_of,
    database,
    video_settings,
    // A replica keeps no session at the broker: it may be another one each time.
    client_id:
      data.share === undefined ? data.client_id : `${data.client_id}-${randomBytes(4).toString('hex')}`,
    share: data.share,
    first_key: await readFirstKey(data.first_key_file, found),
    metrics: await readMetrics(data.metrics, found),
    log: data.log,
    doctor: data.doctor,
    /** Sentences on what works and should not stay as it is. */
    warnings,
  };
  const lines = faults.lines();
  if (lines.length > 0) throw new ConfigInvalid(lines);
  return config;
}

function contentsOf(section: StandaloneFile['files'], dir: string) {
  if (!section) return undefined;
  const { max_gb, days, ...rest } = section;
  return { ...rest, days: fileDays(days), dir: resolve(dir, section.dir), bytes_max: max_gb * 1e9 };
}

/** By kind of file. */
function fileDays(
  days: NonNullable<StandaloneFile['files']>['days'],
): Readonly<Partial<Record<FileKind, number>>> & { readonly default: number } {
  return days;
}

/** Reads the secret of the TURN server. */
async function videoOf({ stun, turn }: StandaloneFile['video'], { dir, faults }: Reading) {
  if (!turn) return { stun, turn: undefined };
  const { secret_file, ...rest } = turn;
  const at = ['video', 'turn', 'secret_file'];
  const secret = (await namedSecret(secret_file, at, { dir, faults }))?.trim();
  if (secret !== undefined && secret.length < turn_secret_chars_min)
    faults.add(at, texts.turn_secret_short(turn_secret_chars_min));
  return { stun, turn: { ...rest, secret: secret ?? '' } };
}

/** Where the messages of kits come from: a broker, or a queue of RabbitMQ. */
async function originOf({ broker, ingest, share }: StandaloneFile, found: Reading) {
  const { faults } = found;
  if (ingest) {
    if (broker) faults.add(['ingest'], texts.two_sources);
    if (share !== undefined) faults.add(['share'], texts.share_with_queue);
    return { broker: undefined, amqp: await readAmqp(ingest, found) };
  }
  if (!broker) faults.add([], texts.no_source);
  return { broker: broker && (await readBroker(broker, username_default, found)), amqp: undefined };
}

/** The API key for a database without any, and the file that holds it. */
async function readFirstKey(file: string | undefined, found: Reading) {
  const text = await namedSecret(file, ['first_key_file'], found);
  return file === undefined ? undefined : { file, text: text?.trim() ?? '' };
}

/** How long the history is kept, by class of messages. */
function retentionOf(history: StandaloneFile['history']) {
  if (history === 'off') return undefined;
  const { events_days, positions_days, feeds_days, kits_days, figures_days, kit_max_mb } = history;
  return {
    days: { event: events_days, position: positions_days, feed: feeds_days, kit: kits_days },
    figures_days,
    /** Of the messages of one kit; undefined: no limit. */
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
  const found = { ...reading(source), dir: dirname(file) };
  const parts = standaloneFile
    .pick({ database: true, database_password_file: true, database_replicated: true })
    .strip();
  const section = parts.parse(named === undefined ? source.value : { database: named });
  const database = await databaseOf(section, found);
  const lines = found.faults.lines();
  if (lines.length > 0) throw new ConfigInvalid(lines);
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

type DatabaseSection = Pick<StandaloneFile, 'database' | 'database_password_file' | 'database_replicated'> & {
  readonly share?: string | undefined;
};
type DatabaseConfig = Awaited<ReturnType<typeof databaseOf>>;

async function databaseOf(
  { database, database_password_file, database_replicated: isReplicated = false, share }: DatabaseSection,
  found: Reading,
) {
  const { dir, faults } = found;
  if (!isPostgres(database)) {
    if (share !== undefined) {
      faults.add(['share'], texts.share_without_postgres);
    }
    if (isReplicated) faults.add(['database_replicated'], texts.replicated_sqlite);
    return { kind: 'sqlite' as const, file: resolve(dir, database) };
  }
  const servers = addressesOf(database);
  if (!servers.every((each) => URL.canParse(each) && !holdsPassword(new URL(each))))
    faults.add(['database'], texts.no_database_address);
  const password = await namedSecret(database_password_file, ['database_password_file'], found);
  return {
    kind: 'postgres' as const,
    url: database,
    isReplicated,
    password: password === undefined ? undefined : lineOf(password),
  };
}

function holdsPassword({ password, searchParams }: URL): boolean {
  return password !== '' || searchParams.has('password');
}

function isPostgres(database: string): boolean {
  return /^postgres(?:ql)?:/u.test(database);
}
