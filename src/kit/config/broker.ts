/** The broker section: its address, its login, and whose acknowledgement counts. */
import type { BrokerOptions } from '../../mqtt/broker.ts';
import {
  type BrokerContext,
  type BrokerSection,
  checkPair,
  readSecrets,
  secretFiles,
  type SecretName,
  secretNames,
  type Secrets,
} from './broker-secrets.ts';
import { readUrl, readWay } from './broker-way.ts';
import { lineOf, readCertificates, readKey, readSecret } from './secrets.ts';
import { texts } from './texts.ts';

/** Stands for an address where a kit has no broker yet: everything is kept in the buffer. */
export const no_broker = 'none';

/** The options of the session, and whose acknowledgement counts. `url`: the port always given, or `no_broker`. */
export interface BrokerConfig extends BrokerOptions {
  readonly ack: 'auto' | 'broker' | 'cloud';
  /** Where its secrets were read from; left out: they are of no file. */
  readonly secret_files?: Readonly<Partial<Record<SecretName, string>>>;
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
