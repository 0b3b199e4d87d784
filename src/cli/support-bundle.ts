/** `kit-connector support-bundle`: writes one file with all diagnostic data and without secrets. */
import { open } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { drivers } from '../../drivers/index.ts';
import { type Config, readConfig } from '../config/config.ts';
import { parseSource, readSource } from '../config/source.ts';
import { messageOf } from '../errors.ts';
import type { QuarantinedMessage } from '../local/api.ts';
import type { LocalClient } from '../local/client.ts';
import { scrubber, secretsIn, withoutSecretKeys } from './support-bundle/redact.ts';
import { systemFacts } from './support-bundle/system.ts';
import { type TarFile, tarOf } from './support-bundle/tar.ts';
import { findDaemon } from './daemon/client.ts';
import { examine } from './doctor/examine.ts';
import { withStoredSecrets } from './doctor/stored-secrets.ts';
import { touchpointsOf } from './doctor/touchpoints.ts';
import { findingLine } from './doctor.ts';
import { exit, say, type Shell, size } from './terminal/shell.ts';
import { type Steps, stepsOn } from './terminal/steps.ts';
import { texts } from './texts.ts';
import { unwritable } from './unwritable.ts';
import { version } from './version.ts';
import { readTextUpTo, small_bytes_max } from '../platform/bounded-file.ts';

const compress = promisify(gzip);

export interface BundleOptions {
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
  const steps = stepsOn(shell.err, texts.bundling, Object.keys(texts.bundle_steps).length);
  try {
    return await writeBundle(options, steps, shell);
  } finally {
    steps.end();
  }
}

async function writeBundle(options: BundleOptions, steps: Steps, shell: Shell): Promise<number> {
  steps.next(texts.bundle_steps.config);
  const known = await readKnown(options.config, shell);
  const scrub = scrubber(known.secrets);
  const files = await contents(options, known, steps, shell);
  steps.next(texts.bundle_steps.compress);
  const time_ms = Date.now();
  const stem = `kit-connector-support-${new Date(time_ms).toISOString().slice(0, 19).replaceAll(/[:T]/gu, '-')}`;
  const scrubbed = files.map(({ name, text }): TarFile => ({ name: `${stem}/${name}`, text: scrub(text) }));
  const archive = await compress(tarOf(scrubbed, time_ms));
  const path = resolve(options.output ?? `${stem}.tar.gz`);
  // Never overwrites a file, and is readable by its owner only: it describes the kit in detail.
  await using handle = await open(path, 'wx', 0o600).catch(unwritable(path));
  await handle.writeFile(archive);
  steps.end();
  say(shell, texts.review_bundle(path, size(archive.length)), texts.log_since_start);
  return exit.ok;
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
  const system = await systemFacts(known.config?.state_dir);
  steps.next(texts.bundle_steps.daemon);
  const lines = findings.map((finding) => findingLine(finding, (_style, text) => text));
  return [
    { name: 'doctor.txt', text: `${lines.join('\n')}\n` },
    json('versions.json', { kit_connector: version(), node: process.versions, platform: process.platform }),
    json('config.json', withoutSecretKeys(known.value) ?? texts.see_doctor),
    json('system.json', system),
    ...(await daemonFiles(daemon, options)),
  ];
}

async function daemonFiles(daemon: LocalClient, { payloads }: BundleOptions): Promise<readonly TarFile[]> {
  const answer = async (name: string, ask: () => Promise<unknown>): Promise<TarFile> =>
    json(name, await ask().catch((error: unknown) => ({ error: messageOf(error) })));
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

function json(name: string, value: unknown): TarFile {
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
  const own = [broker?.password, broker?.key, media, own_key];
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
