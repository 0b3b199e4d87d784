/** The broker section: its address, its login, and whose acknowledgement counts. */
import type { BrokerOptions } from '../../mqtt/broker.ts';
import {
  type BrokerContext,
  type BrokerEntry,
  type BrokerSection,
  checkPair,
  type Located,
  readSecrets,
  secretFiles,
  type SecretName,
  secretNames,
  type Secrets,
} from './broker-secrets.ts';
import { readUrl, readWay } from './broker-way.ts';
import { lineOf, readCertificates, readKey, readSecret } from './secrets.ts';
import type { KeyPath } from './source.ts';
import { texts } from './texts.ts';

/** Stands for an address where a kit has no broker yet: everything is kept in the buffer. */
export const no_broker = 'none';

/** The options of the session, and whose acknowledgement counts. `url`: the port always given, or `no_broker`. */
export interface BrokerConfig extends BrokerOptions {
  readonly ack: 'auto' | 'broker' | 'cloud';
  /** Used in this order where it does not work. */
  readonly others?: readonly BrokerConfig[];
  /** Hosts and domains that a broker may send the kit on to, beside its own. */
  readonly redirect_to?: readonly string[];
  /** Where its secrets were read from; left out: they are of no file. */
  readonly secret_files?: Readonly<Partial<Record<SecretName, string>>>;
}

/** Of kits alone. */
type SeveralKeys = 'urls' | 'redirect_to';

/** Reads what the section names. Undefined when a fault was added. */
export async function readBroker(
  section: Omit<BrokerSection, SeveralKeys> & Partial<Pick<BrokerSection, SeveralKeys>>,
  kit_id: string,
  context: BrokerContext,
): Promise<BrokerConfig | undefined> {
  const { urls, url: only, redirect_to, ...shared } = section;
  if ((urls === undefined) === (only === undefined)) {
    context.faults.add(['broker', 'url'], only === undefined ? texts.no_broker_address : texts.url_and_urls);
    return undefined;
  }
  const at: KeyPath = ['broker'];
  const secrets = await readSecrets(shared, { ...context, at });
  checkPair(secrets, shared, { ...context, at });
  const several: Several = { section: shared, secrets, kit_id };
  const brokers: BrokerConfig[] = [];
  if (only !== undefined) brokers.push(...(await readOne({ url: only }, several, { ...context, at })));
  for (const [n, entry] of (urls ?? []).entries()) {
    const own = typeof entry === 'string' ? { url: entry } : entry;
    brokers.push(...(await readOne(own, several, { ...context, at: [...at, 'urls', n] })));
  }
  const [first, ...others] = brokers;
  return (
    first && { ...first, ...(others.length > 0 && { others }), ...(redirect_to?.length && { redirect_to }) }
  );
}

interface Several {
  readonly section: Omit<BrokerSection, 'url' | SeveralKeys>;
  readonly secrets: Secrets;
  readonly kit_id: string;
}

/** Reads one broker: `own` has its address, and what differs from the section. Empty when a fault was added. */
async function readOne(
  own: BrokerEntry,
  { section: shared, secrets: shared_secrets, kit_id }: Several,
  context: BrokerContext & Located,
): Promise<readonly BrokerConfig[]> {
  const isEntry = context.at.length > 1;
  const section = isEntry ? sectionOf(own, shared) : { ...shared, ...own };
  const secrets = isEntry ? await secretsOf(own, shared_secrets, context) : shared_secrets;
  if (isEntry) checkPair(secrets, section, context);
  checkLogin(section, secrets, context);
  const way = await wayOf(own.url, { section, named: isEntry ? own : section, secrets }, context);
  if (!way) return [];
  return [
    {
      ...way,
      ...loginOf(secrets),
      username: section.username === '' ? undefined : (section.username ?? kit_id),
      protocol: section.protocol === 5 ? '5' : section.protocol,
      keepalive_s: section.keepalive_s,
      connect_timeout_ms: section.connect_timeout_s * 1000,
      ack: section.ack,
    },
  ];
}

function loginOf(secrets: Secrets): Pick<BrokerConfig, 'password' | 'ca' | 'cert' | 'key' | 'secret_files'> {
  const { password, ca, cert, key } = secrets;
  return {
    password: password && lineOf(password.text),
    ca: ca?.text,
    cert: cert?.text,
    key: key?.text,
    secret_files: Object.fromEntries(Object.entries(secrets).map(([name, { file }]) => [name, file])),
  };
}

/** Undefined when a fault was added. */
async function wayOf(
  address: string,
  keys: Parameters<typeof readWay>[1],
  context: BrokerContext & Located,
): Promise<Pick<BrokerConfig, 'url'> | undefined> {
  if (address !== no_broker) {
    const url = readUrl(address, context);
    return url && readWay(url, keys, context);
  }
  context.warnings.push(texts.no_broker(context.source.file));
  return { url: no_broker };
}

/** Another proxy has another login. */
function sectionOf(own: BrokerEntry, shared: Several['section']) {
  const isOtherProxy = own.proxy !== undefined;
  return {
    ...shared,
    ...(isOtherProxy && { proxy_username: undefined, proxy_password_file: undefined }),
    ...own,
  };
}

/** Another user, certificate or proxy does not have the shared secret. */
async function secretsOf(
  own: BrokerEntry,
  { password, key, proxy_password, ...others }: Secrets,
  context: BrokerContext & Located,
): Promise<Secrets> {
  return {
    ...others,
    ...(password && own.username === undefined && { password }),
    ...(key && own.cert_file === undefined && { key }),
    ...(proxy_password && own.proxy === undefined && { proxy_password }),
    ...(await readSecrets(own, { ...context, credentials_dir: undefined })),
  };
}

/**
 * The same with its secrets as its files hold them now. While they are being replaced, what cannot be read, or does not belong
 * together, stays as it was.
 */
export async function renewed<T extends BrokerOptions & Pick<BrokerConfig, 'secret_files'>>(
  broker: T,
): Promise<T> {
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
  return { ...broker, ...secrets, proxy, others: broker.others?.map(withoutSecrets) };
}

/** Without a user name, the client certificate identifies the kit. */
function checkLogin(
  { username }: Pick<BrokerSection, 'username'>,
  secrets: Secrets,
  { faults, at }: BrokerContext & Located,
): void {
  if (username !== '') return;
  if (secrets.password) faults.add([...at, 'username'], texts.password_without_name);
  else if (!secrets.cert) faults.add([...at, 'username'], texts.no_login);
}
