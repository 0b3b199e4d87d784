/** The broker section: its address, its login, and whose acknowledgement counts. */
import type { BrokerOptions } from '../../mqtt/broker.ts';
import {
  type BrokerContext,
  type BrokerEntry,
  type BrokerSection,
  checkPair,
  readSecrets,
  secretFiles,
  type SecretName,
  secretNames,
  type Secrets,
} from './broker-secrets.ts';
import { lineOf, namedSecret, readCertificates, readKey, readSecret } from './secrets.ts';
import type { Reading } from './source.ts';
import { texts } from './texts.ts';
import { resolve } from 'node:path';
import { brokerPlace, isBrokerAddress, isTls, isWebSocket } from '../../platform/broker-address.ts';
import { profileOf } from '../../platform/broker-profiles.ts';
import { isThisMachine } from '../../platform/networks.ts';
import { type Proxy, readProxy } from '../../platform/proxy.ts';

/** Where most brokers serve MQTT over WebSocket. */
const websocket_path = '/mqtt';

/** What is wrong with the address of a broker. */
export function addressFault(text: string): string | undefined {
  const url = parsed(text);
  return url ? faultOf(url) : texts.no_address(withoutLogin(text));
}

/** Without a scheme, the host would be taken for one. */
function parsed(text: string): URL | undefined {
  return text.includes('//') && URL.canParse(text) ? new URL(text) : undefined;
}

function faultOf(url: URL): string | undefined {
  if (url.username !== '' || url.password !== '') return texts.credentials_in_url;
  if (!isBrokerAddress(url)) return texts.unknown_scheme(url.protocol);
  if (url.hostname === '') return texts.no_host;
  const hasPath = !isRoot(url) || url.search !== '';
  return (hasPath && !isWebSocket(url)) || url.hash !== '' ? texts.text_after_port : undefined;
}

function isRoot({ pathname }: URL): boolean {
  return pathname === '' || pathname === '/';
}

function withoutLogin(address: string): string {
  return address.replace(/[^/]*@/u, '***@');
}

type Way = Pick<BrokerOptions, 'url' | 'proxy' | 'alpn' | 'tls_name' | 'websocket'>;

interface Keys {
  /** With what it shares with the other brokers. */
  readonly section: Omit<BrokerEntry, 'url'>;
  /** Its own keys alone: what it shares need not suit it. */
  readonly named: Omit<BrokerEntry, 'url'>;
  readonly secrets: Secrets;
}

async function readWay(
  address: string,
  { section, named, secrets }: Keys,
  context: BrokerContext,
): Promise<Way> {
  if (address === no_broker) {
    context.warnings.push(texts.no_broker(context.file));
    return { url: no_broker };
  }
  const fault = addressFault(address);
  if (fault !== undefined) {
    context.faults.add([...context.at, 'url'], fault);
    return { url: address };
  }
  const url = new URL(address);
  checkTransport(url, named, secrets, context);
  const { tls_name, websocket } = section;
  const alpn = section.alpn ?? alpnOf(url, secrets);
  return {
    url: addressOf(url),
    proxy: proxyOf(section, secrets, context),
    ...(alpn && { alpn }),
    ...(tls_name !== undefined && { tls_name }),
    ...(websocket && {
      websocket: {
        subprotocol: websocket.subprotocol,
        headers: await headersIn(websocket.headers_file, context),
      },
    }),
  };
}

function addressOf(url: URL): string {
  const path = isWebSocket(url) ? `${isRoot(url) ? websocket_path : url.pathname}${url.search}` : '';
  return `${url.protocol}//${url.hostname}:${brokerPlace(url).port}${path}`;
}

/** What makes no sense without encryption or WebSocket. */
function checkTransport(
  url: URL,
  named: Keys['named'],
  secrets: Secrets,
  { faults, warnings, at }: BrokerContext,
): void {
  if (named.websocket && !isWebSocket(url))
    faults.add([...at, 'websocket'], texts.no_effect_without_websocket);
  if (isTls(url)) return;
  for (const key of ['ca_file', 'cert_file', 'key_file', 'alpn', 'tls_name'] as const) {
    if (named[key] !== undefined) faults.add([...at, key], texts.no_effect_without_tls);
  }
  if (secrets.password && !isThisMachine(url.hostname)) {
    warnings.push(texts.password_in_clear(url.host, isWebSocket(url) ? texts.write_wss : texts.write_mqtts));
  }
}

/**
 * What AWS IoT Core tells its protocols apart by on port 443 (its developer guide, "Device communication protocols"): MQTT with a
 * client certificate, or with a custom authorizer.
 */
function alpnOf(url: URL, { cert }: Secrets): readonly string[] | undefined {
  const { alpn_port } = profileOf(url.hostname) ?? {};
  const isShared = url.protocol === 'mqtts:' && brokerPlace(url).port === alpn_port;
  return isShared ? [cert ? 'x-amzn-mqtt-ca' : 'mqtt'] : undefined;
}

/** Null: none, whatever the environment says; undefined: what it says. */
function proxyOf(
  section: Keys['section'],
  secrets: Secrets,
  { faults, at }: BrokerContext,
): Proxy | null | undefined {
  const { proxy: address, proxy_username: username } = section;
  if (address === undefined || address === 'none') {
    for (const key of ['proxy_username', 'proxy_password_file'] as const)
      if (section[key] !== undefined) faults.add([...at, key], texts.no_effect_without_proxy);
    return address === undefined ? undefined : null;
  }
  const proxy = readProxy(address);
  if (!proxy) faults.add([...at, 'proxy'], texts.no_proxy_address(withoutLogin(address)));
  else if (proxy.username !== undefined) faults.add([...at, 'proxy'], texts.credentials_in_proxy);
  if (secrets.proxy_password && username === undefined)
    faults.add([...at, 'proxy_username'], texts.proxy_password_without_name);
  return (
    proxy && { ...proxy, username, password: secrets.proxy_password && lineOf(secrets.proxy_password.text) }
  );
}

/** Headers of a file with `Name: value` a line (RFC 9110 section 5). */
async function headersIn(
  file: string | undefined,
  context: BrokerContext,
): Promise<Readonly<Record<string, string>>> {
  const at = [...context.at, 'websocket', 'headers_file'];
  const text = (await namedSecret(file, at, context)) ?? '';
  const lines = text.split(/\r?\n/u).filter((line) => line.trim() !== '');
  const headers = lines.map((line) => /^([!#$%&'*+.^_`|~\w-]+):([\t\x20-\x7e]*)$/u.exec(line));
  if (headers.includes(null)) context.faults.add(at, texts.no_header(resolve(context.dir, file ?? '')));
  return Object.fromEntries(
    headers.flatMap((found) => (found ? [[found[1] ?? '', (found[2] ?? '').trim()]] : [])),
  );
}

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
  reading: Reading,
): Promise<BrokerConfig | undefined> {
  const { urls, url: only, redirect_to, ...shared } = section;
  if ((urls === undefined) === (only === undefined)) {
    reading.faults.add(['broker', 'url'], only === undefined ? texts.no_broker_address : texts.url_and_urls);
    return undefined;
  }
  const context = { ...reading, at: ['broker'] };
  const secrets = await readSecrets(shared, context);
  checkPair(secrets, shared, context);
  const several: Several = { section: shared, secrets, kit_id };
  const brokers: BrokerConfig[] = [];
  if (only !== undefined) brokers.push(await readOne({ url: only }, several, context));
  for (const [n, entry] of (urls ?? []).entries()) {
    const own = typeof entry === 'string' ? { url: entry } : entry;
    brokers.push(await readOne(own, several, { ...reading, at: ['broker', 'urls', n] }));
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

/** Reads one broker: `own` has its address, and what differs from the section. */
async function readOne(
  own: BrokerEntry,
  { section: shared, secrets: shared_secrets, kit_id }: Several,
  context: BrokerContext,
): Promise<BrokerConfig> {
  const isEntry = context.at.length > 1;
  const section = isEntry ? sectionOf(own, shared) : { ...shared, ...own };
  const secrets = isEntry ? await secretsOf(own, shared_secrets, context) : shared_secrets;
  if (isEntry) checkPair(secrets, section, context);
  checkLogin(section, secrets, context);
  const way = await readWay(own.url, { section, named: isEntry ? own : section, secrets }, context);
  const { password, ca, cert, key } = secrets;
  return {
    ...way,
    password: password && lineOf(password.text),
    ca: ca?.text,
    cert: cert?.text,
    key: key?.text,
    secret_files: Object.fromEntries(Object.entries(secrets).map(([name, { file }]) => [name, file])),
    username: section.username === '' ? undefined : (section.username ?? kit_id),
    protocol: section.protocol === 5 ? '5' : section.protocol,
    keepalive_s: section.keepalive_s,
    connect_timeout_ms: section.connect_timeout_s * 1000,
    ack: section.ack,
  };
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
  context: BrokerContext,
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
  { faults, at }: BrokerContext,
): void {
  if (username !== '') return;
  if (secrets.password) faults.add([...at, 'username'], texts.password_without_name);
  else if (!secrets.cert) faults.add([...at, 'username'], texts.no_login);
}
