/** `kit-connector service support-bundle`: the same as the kit's, for the service for many kits. */
import { dirname, resolve } from 'node:path';
import { readTextUpTo, small_bytes_max } from '../../platform/bounded-file.ts';
import { filesIn } from '../doctor/touchpoints.ts';
import { credential_store, withStoredSecrets } from '../doctor/stored-secrets.ts';
import { jsonFile, machineFiles, packBundle, secretsIn } from '../support-bundle.ts';
import type { Steps } from '../terminal/progress.ts';
import type { Shell } from '../terminal/shell.ts';
import { texts } from '../texts.ts';
import { examineService } from './doctor.ts';
import { lookAtDatabase, readServiceFile, type ServiceFile, service_unit } from './look.ts';
import { statusOf } from './status.ts';

interface ServiceBundleOptions {
  readonly config: string;
  readonly output?: string;
}

export async function serviceBundle(
  { config: file, output }: ServiceBundleOptions,
  shell: Shell,
): Promise<number> {
  const credentials_dir = shell.env['CREDENTIALS_DIRECTORY'];
  return packBundle(service_unit, output, shell, async (steps: Steps) => {
    const read = await readServiceFile(file, credentials_dir);
    const secrets = await secretsOf(read);
    steps.next(texts.bundle_steps.doctor);
    const findings = await examineService(
      { config_file: file, ntp: undefined, credentials_dir },
      shell.signal,
    );
    steps.next(texts.bundle_steps.system);
    const dir = read.database?.kind === 'sqlite' ? dirname(read.database.file) : undefined;
    const files = await machineFiles({ findings, value: read.value, dir, unit: service_unit }, shell);
    steps.next(texts.bundle_steps.daemon);
    const status = read.config ? await statusOf(read.config, shell.signal) : { faults: read.faults };
    return { files: [...files, jsonFile('status.json', status)], secrets };
  });
}

/** Of the configuration, of the files that it names, and of the webhooks: the address of a receiver lets anybody post to it. */
async function secretsOf({ file, value, config, database }: ServiceFile): Promise<readonly string[]> {
  const named = filesIn(value, '', dirname(resolve(file))).filter(({ isPublic }) => !isPublic);
  const files = named.map(async ({ path }) => readTextUpTo(path, small_bytes_max).catch(() => ''));
  const broker = config?.broker && (await withStoredSecrets(config.broker, credential_store, service_unit));
  const webhooks = database ? await webhookSecrets(database) : [];
  return [
    ...(await Promise.all(files)),
    ...secretsIn(value),
    broker?.password,
    broker?.key,
    config?.amqp?.password,
    ...webhooks,
  ].flatMap((secret) => (secret === undefined ? [] : [secret.trim()]));
}

/** A shorter one is an ordinary word. */
const path_chars_min = 12;

async function webhookSecrets(database: NonNullable<ServiceFile['database']>): Promise<readonly string[]> {
  const look = await lookAtDatabase(database);
  const webhooks = look.content?.webhooks ?? [];
  const paths = webhooks.map(({ url }) => url.slice(new URL(url).origin.length));
  return [
    ...webhooks.map(({ url }) => url),
    ...paths.filter((path) => path.length >= path_chars_min),
    ...webhooks.flatMap(({ secrets }) => secrets.map(({ text }) => text)),
  ];
}
