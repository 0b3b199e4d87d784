/** The way to the broker as the configuration names it: its address, a proxy, what TLS asks for, WebSocket. */
import { dirname, resolve } from 'node:path';
import type { BrokerOptions } from '../../mqtt/broker.ts';
import { brokerPlace, isBrokerAddress, isTls, isWebSocket } from '../../platform/broker-address.ts';
import { profileOf } from '../../platform/broker-profiles.ts';
import { isThisMachine } from '../../platform/networks.ts';
import { type Proxy, readProxy } from '../../platform/proxy.ts';
import type { BrokerContext, BrokerEntry, Located, Secrets } from './broker-secrets.ts';
import { lineOf, readSecret } from './secrets.ts';
import { texts } from './texts.ts';

/** Where most brokers serve MQTT over WebSocket. */
const websocket_path = '/mqtt';

/** Undefined when a fault was added. */
export function readUrl(text: string, { faults, at }: BrokerContext & Located): URL | undefined {
  const url = parsed(text);
  const fault = url ? faultOf(url) : texts.no_address(withoutLogin(text));
  if (fault !== undefined) faults.add([...at, 'url'], fault);
  return fault === undefined ? url : undefined;
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

export async function readWay(
  url: URL,
  { section, named, secrets }: Keys,
  context: BrokerContext & Located,
): Promise<Way> {
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
  { faults, warnings, at }: BrokerContext & Located,
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
  { faults, at }: BrokerContext & Located,
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
  named: string | undefined,
  { source, faults, at }: BrokerContext & Located,
): Promise<Readonly<Record<string, string>>> {
  if (named === undefined) return {};
  const file = resolve(dirname(source.file), named);
  const read = await readSecret(file, { secret: true });
  const fault = (sentence: string): void => faults.add([...at, 'websocket', 'headers_file'], sentence);
  if ('fault' in read) fault(read.fault);
  const lines = 'value' in read ? read.value.split(/\r?\n/u).filter((line) => line.trim() !== '') : [];
  const headers = lines.map((line) => /^([!#$%&'*+.^_`|~\w-]+):([\t\x20-\x7e]*)$/u.exec(line));
  if (headers.includes(null)) fault(texts.no_header(file));
  return Object.fromEntries(
    headers.flatMap((found) => (found ? [[found[1] ?? '', (found[2] ?? '').trim()]] : [])),
  );
}
