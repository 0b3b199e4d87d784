/** `kit-connector support-bundle`: writes one file with all diagnostic data and without secrets. */
import { open, readdir, rm, stat, statfs } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import {
  arch,
  cpus,
  freemem,
  hostname,
  loadavg,
  networkInterfaces,
  release,
  totalmem,
  uptime,
} from 'node:os';
import { drivers } from '../../drivers/index.ts';
import { type Config, readConfig } from '../kit/config/config.ts';
import { parseSource, readSource } from '../kit/config/source.ts';
import { messageOf } from '../platform/errors.ts';
import type { QuarantinedMessage } from '../kit/local/api.ts';
import type { LocalClient } from '../kit/local/client.ts';
import { findDaemon } from './daemon/client.ts';
import { examine } from './doctor/examine.ts';
import { withStoredSecrets } from './doctor/stored-secrets.ts';
import { touchpointsOf } from './doctor/touchpoints.ts';
import type { Finding } from './doctor/finding.ts';
import { service_name } from './doctor/service-user.ts';
import { unitFiles } from './doctor/unit.ts';
import { findingLine } from './doctor.ts';
import { exit, say, type Shell, size } from './terminal/shell.ts';
import { type Steps, stepsOn } from './terminal/progress.ts';
import { texts } from './texts.ts';
import { unwritable } from './setup/files.ts';
import { version } from './version.ts';
import { readTextUpTo, small_bytes_max, table_bytes_max } from '../platform/bounded-file.ts';
import { withoutSecrets } from '../platform/log/secrets.ts';

const compress = promisify(gzip);

interface BundleOptions {
  readonly config: string;
  readonly socket?: string;
  readonly output?: string;
  /** Include the bodies of messages in quarantine. */
  readonly payloads?: true;
}

interface Known {
  readonly config: Config | undefined;
  /** The file as parsed; undefined when it cannot be. */
  readonly value: unknown;
  readonly secrets: readonly string[];
}

/** Works also while the daemon is stopped or the configuration is invalid: the bundle then contains the error. */
export async function supportBundle(options: BundleOptions, shell: Shell): Promise<number> {
  return packBundle(service_name, options.output, shell, async (steps) => {
    const known = await readKnown(options.config, shell);
    return { files: await contents(options, known, steps, shell), secrets: known.secrets };
  });
}

/** The content of a bundle, and what must not be in it. */
interface Collected {
  readonly files: readonly TarFile[];
  readonly secrets: readonly string[];
}

/** Writes the bundle of a program. `collect` begins with reading the configuration. */
export async function packBundle(
  program: string,
  output: string | undefined,
  shell: Shell,
  collect: (steps: Steps) => Promise<Collected>,
): Promise<number> {
  const steps = stepsOn(shell.err, texts.bundling, Object.keys(texts.bundle_steps).length);
  try {
    steps.next(texts.bundle_steps.config);
    const { files, secrets } = await collect(steps);
    const scrub = scrubber(secrets);
    steps.next(texts.bundle_steps.compress);
    const time_ms = Date.now();
    const stem = `${program}-support-${new Date(time_ms).toISOString().slice(0, 19).replaceAll(/[:T]/gu, '-')}`;
    const scrubbed = files.map(({ name, text }): TarFile => ({ name: `${stem}/${name}`, text: scrub(text) }));
    const archive = await compress(tarOf(scrubbed, time_ms));
    const path = resolve(output ?? `${stem}.tar.gz`);
    // Never overwrites a file, and is readable by its owner only: it describes the machine in detail.
    await using handle = await open(path, 'wx', 0o600).catch(unwritable(path));
    await handle.writeFile(archive).catch(async (error: unknown) => {
      await rm(path, { force: true });
      unwritable(path)(error);
    });
    steps.end();
    const hasJournal = files.some(({ name }) => name === 'journal.txt');
    say(
      shell,
      texts.review_bundle(path, size(archive.length)),
      ...(hasJournal ? [] : [texts.no_journal(program)]),
    );
    return exit.ok;
  } finally {
    steps.end();
  }
}

async function contents(
  options: BundleOptions,
  known: Known,
  steps: Steps,
  shell: Shell,
): Promise<readonly TarFile[]> {
  const daemon = await findDaemon(options, shell);
  steps.next(texts.bundle_steps.doctor);
  const findings = await examine(
    {
      config_file: options.config,
      socket: options.socket,
      ntp: undefined,
      credentials_dir: shell.env['CREDENTIALS_DIRECTORY'],
    },
    shell.signal,
  );
  steps.next(texts.bundle_steps.system);
  const about = { findings, value: known.value, dir: known.config?.state_dir, unit: service_name };
  const files = await machineFiles(about, shell);
  steps.next(texts.bundle_steps.daemon);
  return [...files, ...(await daemonFiles(daemon, options))];
}

interface About {
  readonly findings: readonly Finding[];
  /** The configuration as parsed. */
  readonly value: unknown;
  /** Of its state. */
  readonly dir: string | undefined;
  readonly unit: string;
}

/** What every bundle has of its machine. */
export async function machineFiles(
  { findings, value, dir, unit }: About,
  { env }: Pick<Shell, 'env'>,
): Promise<readonly TarFile[]> {
  const lines = findings.map((finding) => findingLine(finding, (_style, text) => text));
  const system = await systemFacts(dir);
  const of_unit = Object.entries(await unitFiles(unit, env)).map(([name, text]): TarFile => ({ name, text }));
  return [
    { name: 'doctor.txt', text: `${lines.join('\n')}\n` },
    jsonFile('versions.json', {
      kit_connector: version(),
      node: process.versions,
      platform: process.platform,
    }),
    jsonFile('config.json', withoutSecretKeys(value) ?? texts.see_doctor),
    jsonFile('system.json', system),
    ...of_unit,
  ];
}

async function daemonFiles(daemon: LocalClient, { payloads }: BundleOptions): Promise<readonly TarFile[]> {
  const answer = async (name: string, ask: () => Promise<unknown>): Promise<TarFile> =>
    jsonFile(name, await ask().catch((error: unknown) => ({ error: messageOf(error) })));
  const recent = await daemon
    .recentLog()
    .catch((error: unknown) => [JSON.stringify({ error: messageOf(error) })]);
  return [
    await answer('status.json', async () => withoutSecretKeys(await daemon.status())),
    await answer('buffer.json', async () => daemon.buffer()),
    await answer('quarantine.json', async () => {
      const rows = await daemon.quarantine();
      return payloads ? withBodies(daemon, rows) : rows;
    }),
    { name: 'log.jsonl', text: `${recent.join('\n')}\n` },
  ];
}

/** Adds the bodies of the oldest messages, up to a limit. */
async function withBodies(
  daemon: LocalClient,
  rows: readonly QuarantinedMessage[],
): Promise<readonly QuarantinedMessage[]> {
  let bytes = 0;
  const out: QuarantinedMessage[] = [];
  for (const row of rows) {
    bytes += row.body_bytes;
    // A message discarded since the list was read has no body.
    out.push(bytes > bodies_bytes_max ? row : await daemon.quarantined(row.id).catch(() => row));
  }
  return out;
}
const bodies_bytes_max = 4 * 1024 * 1024;

export function jsonFile(name: string, value: unknown): TarFile {
  return { name, text: `${JSON.stringify(value, undefined, 2)}\n` };
}

/** Reads the secrets so that every copy of them can be removed. */
async function readKnown(file: string, shell: Shell): Promise<Known> {
  const value = await readSource(file)
    .then((text): unknown => parseSource(file, text).value)
    .catch(() => undefined);
  const config = await readConfig(file, {
    drivers,
    credentials_dir: shell.env['CREDENTIALS_DIRECTORY'],
  }).catch(() => undefined);
  const media = config?.media && 'password' in config.media ? config.media.password : undefined;
  const broker = config?.broker && (await withStoredSecrets(config.broker));
  const own_key =
    config &&
    (await readTextUpTo(join(config.state_dir, 'service-key'), small_bytes_max).catch(() => undefined));
  const brokers = [broker, ...(broker?.others ?? [])];
  const own = [...brokers.flatMap((each) => [each?.password, each?.key]), media, own_key];
  const dir = dirname(resolve(file));
  const named = config ? touchpointsOf(value, config.drivers, dir).secrets : [];
  const secret = named.filter(({ isPublic }) => !isPublic);
  const texts = await Promise.all(
    secret.map(async ({ path }) => readTextUpTo(path, small_bytes_max).catch(() => '')),
  );
  return {
    config,
    value,
    secrets: [...own, ...texts, ...secretsIn(value)].flatMap((secret) =>
      secret === undefined ? [] : [secret.trim()],
    ),
  };
}

// Removes secrets from exported text: by key names, in addresses, and by the known values. Pure.

const hidden = '***';
/** Keys whose value is a secret; the name of a file that contains one is not. */
const secret_key = /passw|passphrase|secret|token|authorization|credential|community|api_?key|^psk$|^pin$/iu;
const file_key = /_(?:file|dir)$/iu;
const credentials_in_url = /(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@"']+@/giu;
const password_in_url = /\b[a-z][a-z0-9+.-]*:\/\/[^\s/@:"']*:([^\s/@"']+)@/giu;
/** Shorter secrets would match ordinary words. */
const secret_chars_min = 4;

/** A copy of a parsed file in which the values of secret keys are hidden. */
export function withoutSecretKeys(value: unknown): unknown {
  if (typeof value === 'string') return withoutSecrets(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutSecretKeys);
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      secret_key.test(key) && !file_key.test(key) ? hidden : withoutSecretKeys(inner),
    ]),
  );
}

/** The secrets in a parsed file: values of secret keys, and passwords in addresses. */
export function secretsIn(value: unknown): readonly string[] {
  if (typeof value === 'string')
    return Array.from(value.matchAll(password_in_url), ([, password = '']) => password);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]: [string, unknown]) =>
    typeof inner === 'string' && secret_key.test(key) && !file_key.test(key) ? [inner] : secretsIn(inner),
  );
}

/** Hides every known secret, also escaped as JSON, in an address or in Base64. */
export function scrubber(secrets: readonly string[]): (text: string) => string {
  const forms = secrets.flatMap((secret) => (secret.length < secret_chars_min ? [] : formsOf(secret)));
  const longest_first = [...new Set(forms)].toSorted((a, b) => b.length - a.length);
  return (text) =>
    longest_first
      .reduce((rest, form) => rest.replaceAll(form, hidden), text)
      .replaceAll(credentials_in_url, `$1${hidden}@`);
}

function formsOf(secret: string): readonly string[] {
  const base64 = Buffer.from(secret).toString('base64');
  return [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret), base64];
}

// Facts of the machine for a support bundle, omitting what cannot be read.

const files = {
  os_release: '/etc/os-release',
  mounts: '/proc/mounts',
  memory: '/proc/meminfo',
  routes: '/proc/net/route',
  resolv_conf: '/etc/resolv.conf',
  pressure_io: '/proc/pressure/io',
} as const;
const file_chars_max = 20_000;

export async function systemFacts(state_dir: string | undefined): Promise<object> {
  return {
    hostname: hostname(),
    kernel: release(),
    arch: arch(),
    cpus: cpus().map(({ model, speed }) => `${model} ${speed} MHz`),
    memory_bytes: { total: totalmem(), free: freemem() },
    uptime_s: Math.round(uptime()),
    load: loadavg(),
    interfaces: networkInterfaces(),
    files: await readAll(files),
    serial: await readdir('/dev/serial/by-id').catch(() => []),
    state_dir: state_dir === undefined ? null : await directoryFacts(state_dir),
  };
}

async function readAll(named: Readonly<Record<string, string>>): Promise<Record<string, string>> {
  const read = Object.entries(named).map(async ([name, file]) => {
    const text = await readTextUpTo(file, table_bytes_max).catch(() => '');
    return [name, text.slice(0, file_chars_max)] as const;
  });
  return Object.fromEntries((await Promise.all(read)).filter(([, text]) => text !== ''));
}

async function directoryFacts(dir: string): Promise<object> {
  const names = await readdir(dir).catch(() => []);
  const sizes = names.map(
    async (name) => [name, (await stat(join(dir, name)).catch(() => undefined))?.size ?? null] as const,
  );
  const disk = await statfs(dir).catch(() => undefined);
  return {
    dir,
    bytes: Object.fromEntries(await Promise.all(sizes)),
    free_bytes: disk ? disk.bavail * disk.bsize : null,
    free_inodes: disk?.ffree ?? null,
  };
}

// Writes a tar archive of small text files (POSIX.1-1988 ustar): headers of 512 bytes, contents padded to as much. Pure.

export interface TarFile {
  /** Relative, at most 100 bytes. */
  readonly name: string;
  readonly text: string;
}

const block_bytes = 512;
const name_bytes_max = 100;
/** Readable and writable by its owner only. */
const mode = 0o600;

/** The bytes of the archive; two empty blocks end it. */
export function tarOf(files: readonly TarFile[], time_ms: number): Buffer {
  const blocks = files.flatMap(({ name, text }) => {
    const content = Buffer.from(text);
    const padding = (block_bytes - (content.length % block_bytes)) % block_bytes;
    return [headerOf(name, content.length, time_ms), content, Buffer.alloc(padding)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(2 * block_bytes)]);
}

function headerOf(name: string, size: number, time_ms: number): Buffer {
  if (Buffer.byteLength(name) > name_bytes_max)
    throw new RangeError(`${name} is longer than an archive name may be`);
  const header = Buffer.alloc(block_bytes);
  const octal = (value: number, at: number, digits: number): number =>
    header.write(`${value.toString(8).padStart(digits, '0')}\0`, at, 'latin1');
  header.write(name, 0, 'utf8');
  octal(mode, 100, 7);
  octal(0, 108, 7);
  octal(0, 116, 7);
  octal(size, 124, 11);
  octal(Math.floor(time_ms / 1_000), 136, 11);
  // The checksum is computed with spaces in its own field.
  header.write('        ', 148, 'latin1');
  header.write('0', 156, 'latin1');
  header.write('ustar\x0000', 257, 'latin1');
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return header;
}
