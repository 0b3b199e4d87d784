/** The broker section: its address, and the secrets in separate files or in systemd's credentials folder. */
import type { X509Certificate } from 'node:crypto';
import { access } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { z } from 'zod';
import type { BrokerOptions } from '../mqtt/broker.ts';
import type { configFile } from './schema.ts';
import { type Read, readCertificates, readKey, readSecret, validityWarning } from './secrets.ts';
import type { FaultList, Source } from './source.ts';

/** Stands for an address where a kit has no broker yet: everything is kept in the buffer. */
export const no_broker = 'none';

/** The options of the session, and whose acknowledgement counts. `url`: the port always given, or `no_broker`. */
export interface BrokerConfig extends BrokerOptions {
  readonly ack: 'auto' | 'broker' | 'cloud';
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
  const texts = await readTexts(section, context);
  checkPair(texts, section, context);
  checkLogin(section, texts, context);
  if (!url) return undefined;
  if (url === no_broker) context.warnings.push(noBrokerWarning(context.source.file));
  else checkTransport(url, section, texts, context);
  return {
    url: url === no_broker ? no_broker : addressOf(url),
    username: section.username === '' ? undefined : (section.username ?? kit_id),
    password: texts.password?.text.replace(/\r?\n$/, ''),
    ca: texts.ca?.text,
    cert: texts.cert?.text,
    key: texts.key?.text,
    protocol: section.protocol === 5 ? '5' : section.protocol,
    keepalive_s: section.keepalive_s,
    connect_timeout_ms: section.connect_timeout_s * 1000,
    ack: section.ack,
  };
}

/** Without a user name, the client certificate identifies the kit. */
function checkLogin(section: BrokerSection, texts: Texts, { faults }: BrokerContext): void {
  if (section.username !== '') return;
  if (texts.password)
    faults.add(
      ['broker', 'username'],
      'is empty, and a password needs one; write the name, or remove the password',
    );
  else if (!texts.cert)
    faults.add(
      ['broker', 'username'],
      'is empty, which only a client certificate makes up for; write the name, or name broker.cert_file',
    );
}

function noBrokerWarning(file: string): string {
  return `no broker is configured, messages wait in the buffer: write its address as broker.url in ${file}, then restart kit-connector`;
}

function addressOf({ protocol, hostname, port }: URL): string {
  return `${protocol}//${hostname}:${port || (protocol === 'mqtts:' ? '8883' : '1883')}`;
}

function readUrl(text: string, faults: FaultList): URL | undefined {
  const fault = (sentence: string): undefined => {
    faults.add(['broker', 'url'], sentence);
  };
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url)
    return fault(
      `is "${text.replace(/[^/]*@/, '***@')}", which is not an address; write it like mqtts://broker.example.com:8883`,
    );
  if (url.username !== '' || url.password !== '') {
    return fault(
      'holds credentials; move the name to broker.username and the password to a file named by broker.password_file',
    );
  }
  if (url.protocol !== 'mqtt:' && url.protocol !== 'mqtts:') {
    return fault(
      `begins with ${url.protocol}//, which is not supported; write mqtts:// (or mqtt:// without encryption)`,
    );
  }
  if (url.hostname === '') return fault('has no host; write it like mqtts://broker.example.com:8883');
  if ((url.pathname !== '' && url.pathname !== '/') || url.search !== '' || url.hash !== '') {
    return fault('has text after the port; write only mqtts://host:port');
  }
  return url;
}

const secretFiles = {
  password: { key: 'password_file', credential: 'mqtt-password', secret: true },
  ca: { key: 'ca_file', credential: 'mqtt-ca', secret: false },
  cert: { key: 'cert_file', credential: 'mqtt-cert', secret: false },
  key: { key: 'key_file', credential: 'mqtt-key', secret: true },
} as const;
type SecretName = keyof typeof secretFiles;
const secretNames = ['password', 'ca', 'cert', 'key'] as const satisfies readonly SecretName[];

interface SecretText {
  readonly file: string;
  readonly text: string;
}
type Texts = { [K in SecretName]?: SecretText };

/** A file that the section names comes before the credential of the same purpose. */
async function readTexts(section: BrokerSection, context: BrokerContext): Promise<Texts> {
  const texts: Texts = {};
  for (const name of secretNames) {
    const { key, credential, secret } = secretFiles[name];
    const named = section[key];
    const file = named
      ? resolve(dirname(context.source.file), named)
      : await credentialFile(context.credentials_dir, credential);
    if (file === undefined) continue;
    const text = unwrap(await readSecret(file, { secret }), name, context);
    if (text !== undefined) texts[name] = { file, text };
  }
  return texts;
}

async function credentialFile(dir: string | undefined, name: string): Promise<string | undefined> {
  if (dir === undefined) return undefined;
  const file = join(dir, name);
  return access(file).then(
    () => file,
    () => undefined,
  );
}

/** The value, or undefined after its fault was added. */
function unwrap<T>(read: Read<T>, name: SecretName, { faults }: BrokerContext): T | undefined {
  if ('value' in read) return read.value;
  faults.add(['broker', secretFiles[name].key], read.fault);
  return undefined;
}

/** Checks the PEM texts, and that the client certificate and its key belong together. */
function checkPair(texts: Texts, section: BrokerSection, context: BrokerContext): void {
  const certificates = checkCertificates(texts, 'cert', context);
  checkCertificates(texts, 'ca', context);
  const key = texts.key && unwrap(readKey(texts.key.file, texts.key.text), 'key', context);
  const leaf = certificates?.[0];
  for (const [half, other] of [
    ['cert', 'key'],
    ['key', 'cert'],
  ] as const) {
    const missing = secretFiles[other].key;
    if (!texts[half] || texts[other] || section[missing] !== undefined) continue;
    context.faults.add(
      ['broker', secretFiles[half].key],
      `is half of a pair; name the other file as broker.${missing}`,
    );
  }
  if (leaf && key && texts.key && !leaf.checkPrivateKey(key)) {
    context.faults.add(
      ['broker', 'key_file'],
      `${texts.key.file} is not the key of the certificate; install the two that were issued together`,
    );
  }
}

function checkCertificates(
  texts: Texts,
  name: 'ca' | 'cert',
  context: BrokerContext,
): readonly X509Certificate[] | undefined {
  const given = texts[name];
  const certificates = given && unwrap(readCertificates(given.file, given.text), name, context);
  for (const certificate of certificates ?? []) {
    const warning = validityWarning(`the certificate in ${given?.file}`, certificate, Date.now());
    if (warning) context.warnings.push(warning);
  }
  return certificates;
}

/** What makes no sense without encryption. */
function checkTransport(
  url: URL,
  section: BrokerSection,
  texts: Texts,
  { faults, warnings }: BrokerContext,
): void {
  if (url.protocol === 'mqtts:') return;
  for (const key of ['ca_file', 'cert_file', 'key_file'] as const) {
    if (section[key] !== undefined)
      faults.add(['broker', key], 'has no effect on an mqtt:// address; write mqtts:// in broker.url');
  }
  if (texts.password && !isLoopback(url.hostname)) {
    warnings.push(
      `the password crosses the network unencrypted to ${url.host}; write mqtts:// in broker.url`,
    );
  }
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || hostname.startsWith('127.');
}
