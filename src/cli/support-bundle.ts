/** `kit-connector support-bundle`: one file with all that a developer asks for, and none of the kit's secrets. */
import { open, readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { drivers } from '../../drivers/index.ts';
import { type Config, readConfig } from '../config.ts';
import { parseSource, readSource } from '../config/source.ts';
import { messageOf } from '../errors.ts';
import type { QuarantinedMessage } from '../local/api.ts';
import type { LocalClient } from '../local/client.ts';
import { scrubber, secretsIn, withoutSecretKeys } from './bundle/redact.ts';
import { systemFacts } from './bundle/system.ts';
import { type TarFile, tarOf } from './bundle/tar.ts';
import { findDaemon } from './daemon-client.ts';
import { examine } from './doctor/examine.ts';
import { withStoredSecrets } from './doctor/stored-secrets.ts';
import { touchpointsOf } from './doctor/touchpoints.ts';
import { findingLine } from './doctor.ts';
import { exit, say, type Shell, size } from './shell.ts';
import { unwritable } from './unwritable.ts';
import { version } from './version.ts';

const compress = promisify(gzip);

export interface BundleOptions {
  readonly config: string;
  readonly socket?: string;
  readonly output?: string;
  /** The bodies of messages in the quarantine too. */
  readonly payloads?: true;
}

interface Known {
  readonly config: Config | undefined;
  /** The file as parsed; undefined when it cannot be. */
  readonly value: unknown;
  readonly secrets: readonly string[];
}

/** Works also while the daemon is stopped or the configuration is broken: then the bundle says so. */
export async function supportBundle(options: BundleOptions, shell: Shell): Promise<number> {
  const known = await readKnown(options.config, shell);
  const scrub = scrubber(known.secrets);
  const files = await contents(options, known, shell);
  const time_ms = Date.now();
  const stem = `kit-connector-support-${new Date(time_ms).toISOString().slice(0, 19).replaceAll(/[:T]/gu, '-')}`;
  const scrubbed = files.map(({ name, text }): TarFile => ({ name: `${stem}/${name}`, text: scrub(text) }));
  const archive = await compress(tarOf(scrubbed, time_ms));
  const path = resolve(options.output ?? `${stem}.tar.gz`);
  // Never over another file, and for its owner only: it tells much about the kit.
  await using handle = await open(path, 'wx', 0o600).catch(unwritable(path));
  await handle.writeFile(archive);
  say(
    shell,
    `${path} (${size(archive.length)}): look into it before you send it`,
    'it holds the log since the last start; of before, send: journalctl -u kit-connector --since -7d',
  );
  return exit.ok;
}

async function contents(options: BundleOptions, known: Known, shell: Shell): Promise<readonly TarFile[]> {
  const daemon = await findDaemon(options, shell);
  const findings = await examine(
    {
      config_file: options.config,
      socket: options.socket,
      ntp: undefined,
      credentials_dir: shell.env['CREDENTIALS_DIRECTORY'],
    },
    shell.signal,
  );
  const lines = findings.map((finding) => findingLine(finding, (_style, text) => text));
  return [
    { name: 'doctor.txt', text: `${lines.join('\n')}\n` },
    json('versions.json', { kit_connector: version(), node: process.versions, platform: process.platform }),
    json('config.json', withoutSecretKeys(known.value) ?? 'the file cannot be read: see doctor.txt'),
    json('system.json', await systemFacts(known.config?.state_dir)),
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
      return payloads ? rows : rows.map(withoutBody);
    }),
    { name: 'log.jsonl', text: `${recent.join('\n')}\n` },
  ];
}

function withoutBody({ id, lane, channel, time, code, reason, body }: QuarantinedMessage): object {
  return { id, lane, channel, time, code, reason, body_chars: body.length };
}

function json(name: string, value: unknown): TarFile {
  return { name, text: `${JSON.stringify(value, undefined, 2)}\n` };
}

/** The secrets are read so that they can be taken out, wherever somebody has repeated them. */
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
    config && (await readFile(join(config.state_dir, 'service-key'), 'utf8').catch(() => undefined));
  const own = [broker?.password, broker?.key, media, own_key];
  const dir = dirname(resolve(file));
  const named = config ? touchpointsOf(value, config.drivers, dir).secrets : [];
  const secret = named.filter(({ isPublic }) => !isPublic);
  const texts = await Promise.all(secret.map(async ({ path }) => readFile(path, 'utf8').catch(() => '')));
  return {
    config,
    value,
    secrets: [...own, ...texts, ...secretsIn(value)].flatMap((secret) =>
      secret === undefined ? [] : [secret.trim()],
    ),
  };
}
