/** The broker section: its address, and the secrets in separate files or in systemd's credentials folder. */
import type { X509Certificate } from 'node:crypto';
import { lstat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { z } from 'zod';
import { hasCode } from '../../platform/errors.ts';
import type { BrokerOptions } from '../../mqtt/broker.ts';
import { readUrl, readWay } from './broker-way.ts';
import type { configFile } from './schema.ts';
import { lineOf, type Read, readCertificates, readKey, readSecret, validityWarning } from './secrets.ts';
import type { FaultList, Source } from './source.ts';
import { texts } from './texts.ts';

/** Stands for an address where a kit has no broker yet: everything is kept in the buffer. */
export const no_broker = 'none';

/** The options of the session, and whose acknowledgement counts. `url`: the port always given, or `no_broker`. */
export interface BrokerConfig extends BrokerOptions {
  readonly ack: 'auto' | 'broker' | 'cloud';
  /** Where its secrets were read from; left out: they are of no file. */
  readonly secret_files?: Readonly<Partial<Record<SecretName, string>>>;
}

export type BrokerSection = NonNullable<z.output<typeof configFile>['broker']>;

export interface BrokerContext {
  readonly source: Source;
  readonly faults: FaultList;
  readonly warnings: string[];
  readonly credentials_dir: string | undefined;
}

/** Reads what the section names. Undefined when a fault was added. */
export async function readBroker(
  section: BrokerSection,
  kit_id: string,
  context: BrokerContext,
): Promise<BrokerConfig | undefined> {
  const url = section.url === no_broker ? no_broker : readUrl(section.url, context.faults);
  const secrets = await readSecrets(section, context);
  checkPair(secrets, section, context);
  checkLogin(section, secrets, context);
  if (!url) return undefined;
  if (url === no_broker) context.warnings.push(texts.no_broker(context.source.file));
  const way = url === no_broker ? { url } : await readWay(url, section, secrets, context);
  return {
    ...way,
    username: section.username === '' ? undefined : (section.username ?? kit_id),
    password: secrets.password && lineOf(secrets.password.text),
    ca: secrets.ca?.text,
    cert: secrets.cert?.text,
    key: secrets.key?.text,
    secret_files: Object.fromEntries(Object.entries(secrets).map(([name, { file }]) => [name, file])),
    protocol: section.protocol === 5 ? '5' : section.protocol,
    keepalive_s: section.keepalive_s,
    connect_timeout_ms: section.connect_timeout_s * 1000,
    ack: section.ack,
  };
}

/**
 * The same with its secrets as its files hold them now. While they are being replaced, what cannot be read, or does not belong
 * together, stays as it was.
 */
export async function renewed(broker: BrokerConfig): Promise<BrokerConfig> {
  const now: { [K in SecretName]?: string } = {};
  for (const name of secretNames) {
    const file = broker.secret_files?.[name];
    if (file === undefined) continue;
    const read = await readSecret(file, { secret: secretFiles[name].secret });
    if ('fault' in read) return broker;
    now[name] = read.value;
  }
  const { password, proxy_password, ca = broker.ca, cert = broker.cert, key = broker.key } = now;
  if (!isWhole({ ca, cert, key })) return broker;
  return {
    ...broker,
    ca,
    cert,
    key,
    ...(password !== undefined && { password: lineOf(password) }),
    ...(broker.proxy &&
      proxy_password !== undefined && { proxy: { ...broker.proxy, password: lineOf(proxy_password) } }),
  };
}

/** The same as a function; undefined where there is no broker. */
export function renewal(broker: BrokerConfig | undefined): (() => Promise<BrokerConfig>) | undefined {
  return broker && (async () => renewed(broker));
}

function isWhole({ ca, cert, key }: Pick<BrokerOptions, 'ca' | 'cert' | 'key'>): boolean {
  if (ca !== undefined && !('value' in readCertificates('', ca))) return false;
  if (cert === undefined || key === undefined) return true;
  const [certificates, private_key] = [readCertificates('', cert), readKey('', key)];
  if (!('value' in certificates) || !('value' in private_key)) return false;
  return certificates.value[0]?.checkPrivateKey(private_key.value) === true;
}

/** Without what its files hold, which is renewed while it runs. */
export function withoutSecrets(broker: BrokerConfig): object {
  const secrets = Object.fromEntries(Object.keys(broker.secret_files ?? {}).map((name) => [name, undefined]));
  const proxy =
    broker.proxy && 'proxy_password' in secrets ? { ...broker.proxy, password: undefined } : broker.proxy;
  return { ...broker, ...secrets, proxy };
}

/** Without a user name, the client certificate identifies the kit. */
function checkLogin(section: BrokerSection, secrets: Secrets, { faults }: BrokerContext): void {
  if (section.username !== '') return;
  if (secrets.password) faults.add(['broker', 'username'], texts.password_without_name);
  else if (!secrets.cert) faults.add(['broker', 'username'], texts.no_login);
}

const secretFiles = {
  password: { key: 'password_file', credential: 'mqtt-password', secret: true },
  ca: { key: 'ca_file', credential: 'mqtt-ca', secret: false },
  cert: { key: 'cert_file', credential: 'mqtt-cert', secret: false },
  key: { key: 'key_file', credential: 'mqtt-key', secret: true },
  proxy_password: { key: 'proxy_password_file', credential: 'mqtt-proxy-password', secret: true },
} as const;
type SecretName = keyof typeof secretFiles;
const secretNames = [
  'password',
  'ca',
  'cert',
  'key',
  'proxy_password',
] as const satisfies readonly SecretName[];

interface SecretText {
  readonly file: string;
  readonly text: string;
}
export type Secrets = { [K in SecretName]?: SecretText };

/** A file that the section names comes before the credential of the same purpose. */
async function readSecrets(section: BrokerSection, context: BrokerContext): Promise<Secrets> {
  const secrets: Secrets = {};
  for (const name of secretNames) {
    const { key, credential, secret } = secretFiles[name];
    const named = section[key];
    const file = named
      ? resolve(dirname(context.source.file), named)
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
function unwrap<T>(read: Read<T>, name: SecretName, { faults }: BrokerContext): T | undefined {
  if ('value' in read) return read.value;
  faults.add(['broker', secretFiles[name].key], read.fault);
  return undefined;
}

/** Checks the PEM secrets, and that the client certificate and its key belong together. */
function checkPair(secrets: Secrets, section: BrokerSection, context: BrokerContext): void {
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
    context.faults.add(['broker', secretFiles[half].key], texts.half_pair(missing));
  }
  if (leaf && key && secrets.key && !leaf.checkPrivateKey(key)) {
    context.faults.add(['broker', 'key_file'], texts.other_key(secrets.key.file));
  }
}

function checkCertificates(
  secrets: Secrets,
  name: 'ca' | 'cert',
  context: BrokerContext,
): readonly X509Certificate[] | undefined {
  const given = secrets[name];
  const certificates = given && unwrap(readCertificates(given.file, given.text), name, context);
  for (const certificate of certificates ?? []) {
    const warning = validityWarning(texts.certificate_in(given?.file ?? ''), certificate, Date.now());
    if (warning) context.warnings.push(warning);
  }
  return certificates;
}
