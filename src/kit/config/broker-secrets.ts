/** The secrets of the broker section: in files that it names, or in systemd's credentials folder. */
import type { X509Certificate } from 'node:crypto';
import { lstat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { z } from 'zod';
import { hasCode } from '../../platform/errors.ts';
import type { configFile } from './schema.ts';
import { type Read, readCertificates, readKey, readSecret, validityWarning } from './secrets.ts';
import type { KeyPath, Reading } from './source.ts';
import { texts } from './texts.ts';

export type BrokerSection = NonNullable<z.output<typeof configFile>['broker']>;
/** A broker of several, where it has keys of its own. */
export type BrokerEntry = Exclude<NonNullable<BrokerSection['urls']>[number], string>;
type SecretKeys = Partial<Pick<BrokerSection, (typeof secretFiles)[SecretName]['key']>>;

/** What is read, and where the keys stand in it. */
export interface BrokerContext extends Reading {
  readonly at: KeyPath;
}

export const secretFiles = {
  password: { key: 'password_file', credential: 'mqtt-password', secret: true },
  ca: { key: 'ca_file', credential: 'mqtt-ca', secret: false },
  cert: { key: 'cert_file', credential: 'mqtt-cert', secret: false },
  key: { key: 'key_file', credential: 'mqtt-key', secret: true },
  proxy_password: { key: 'proxy_password_file', credential: 'mqtt-proxy-password', secret: true },
} as const;
export type SecretName = keyof typeof secretFiles;
export const secretNames = ['password', 'ca', 'cert', 'key', 'proxy_password'] as const;

export type Secrets = { [K in SecretName]?: { readonly file: string; readonly text: string } };

/** A file that the section names comes before the credential of the same purpose. */
export async function readSecrets(section: SecretKeys, context: BrokerContext): Promise<Secrets> {
  const secrets: Secrets = {};
  for (const name of secretNames) {
    const { key, credential, secret } = secretFiles[name];
    const named = section[key];
    const file = named
      ? resolve(context.dir, named)
      : await credentialFile(context.credentials_dir, credential);
    if (file === undefined) continue;
    const text = unwrap(await readSecret(file, { secret }), name, context);
    if (text !== undefined) secrets[name] = { file, text };
  }
  return secrets;
}

async function credentialFile(dir: string | undefined, name: string): Promise<string | undefined> {
  // An empty variable would name the directory in which the process was started.
  if (dir === undefined || dir === '') return undefined;
  const file = join(dir, name);
  return lstat(file).then(
    () => file,
    // Only a missing file was not passed. Any other fault is reported by the reader: without the password from systemd
    // the broker would refuse the kit, and the log would not show why.
    (error: unknown) => (hasCode(error, 'ENOENT') ? undefined : file),
  );
}

/** The value, or undefined after its fault was added. */
function unwrap<T>(read: Read<T>, name: SecretName, { faults, at }: BrokerContext): T | undefined {
  if ('value' in read) return read.value;
  faults.add([...at, secretFiles[name].key], read.fault);
  return undefined;
}

/** Checks the PEM secrets, and that the client certificate and its key belong together. */
export function checkPair(secrets: Secrets, section: SecretKeys, context: BrokerContext): void {
  const certificates = checkCertificates(secrets, 'cert', context);
  checkCertificates(secrets, 'ca', context);
  const key = secrets.key && unwrap(readKey(secrets.key.file, secrets.key.text), 'key', context);
  const leaf = certificates?.[0];
  for (const [half, other] of [
    ['cert', 'key'],
    ['key', 'cert'],
  ] as const) {
    const missing = secretFiles[other].key;
    if (!secrets[half] || secrets[other] || section[missing] !== undefined) continue;
    context.faults.add([...context.at, secretFiles[half].key], texts.half_pair(missing));
  }
  if (leaf && key && secrets.key && !leaf.checkPrivateKey(key)) {
    context.faults.add([...context.at, 'key_file'], texts.other_key(secrets.key.file));
  }
}

/** A longer file is what a system trusts, where always some of another authority has expired. */
const chain_max = 10;

function checkCertificates(
  secrets: Secrets,
  name: 'ca' | 'cert',
  context: BrokerContext,
): readonly X509Certificate[] | undefined {
  const given = secrets[name];
  const certificates = given && unwrap(readCertificates(given.file, given.text), name, context);
  const isOfSystem = certificates !== undefined && certificates.length > chain_max;
  for (const certificate of isOfSystem ? [] : (certificates ?? [])) {
    const warning = validityWarning(texts.certificate_in(given?.file ?? ''), certificate, Date.now());
    if (warning) context.warnings.push(warning);
  }
  return certificates;
}
