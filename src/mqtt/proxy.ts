/**
 * Proxies between this machine and the broker: HTTP CONNECT (RFC 9110 section 9.3.6) and SOCKS5 (RFC 1928). The proxy looks up the
 * name of the broker.
 */
import { type IncomingMessage, request } from 'node:http';
import { isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { SocksClient } from 'socks';
import type { Place } from '../platform/broker-address.ts';
import { messageOf } from '../platform/errors.ts';
import { cleanText } from '../platform/foreign-text.ts';
import { nameOfProxy, type Proxy, proxyOfEnvironment, readProxy } from '../platform/proxy.ts';
import type { BrokerOptions } from './broker.ts';
import { texts } from './texts.ts';

const login_required = 407;
const schemes_max = 4;
const scheme_chars_max = 20;
/** The deadline of the whole attempt is shorter. */
const no_timeout_ms = 3_600_000;

/** The configured one, else that of the environment. Throws `ProxyFailed` where the environment holds something else. */
export function proxyOf({ url, proxy }: Pick<BrokerOptions, 'url' | 'proxy'>): Proxy | undefined {
  if (proxy !== undefined) return proxy ?? undefined;
  const named = proxyOfEnvironment(new URL(url));
  const read = named === undefined ? undefined : readProxy(named);
  if (named !== undefined && !read) throw new ProxyFailed(texts.environment_proxy);
  return read;
}

/** The address of a broker and the proxy before it, for people. */
export function wayTo(broker: Pick<BrokerOptions, 'url' | 'proxy'>): string {
  if (!URL.canParse(broker.url)) return broker.url;
  const { proxy = readProxy(proxyOfEnvironment(new URL(broker.url)) ?? '') } = broker;
  return proxy ? `${broker.url} through ${nameOfProxy(proxy)}` : broker.url;
}

/** The proxy did not make the connection. `code` names it for sockets, which report no error without one. */
export class ProxyFailed extends Error {
  override readonly name = 'ProxyFailed';
  readonly code = 'PROXY_FAILED';
}

/** Has the proxy at the other end of `stream` connect to the broker; resolves with what then leads there. */
export async function tunnel(stream: Duplex, proxy: Proxy, to: Place, signal: AbortSignal): Promise<Duplex> {
  return proxy.kind === 'socks5' ? socksTo(stream, proxy, to) : connectTo(stream, proxy, to, signal);
}

async function connectTo(
  stream: Duplex,
  proxy: Proxy,
  { host, port }: Place,
  signal: AbortSignal,
): Promise<Duplex> {
  const authority = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const { username, password = '' } = proxy;
  const asking = request({
    method: 'CONNECT',
    path: authority,
    headers: {
      host: authority,
      ...(username !== undefined && {
        'proxy-authorization': `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
      }),
    },
    createConnection: () => stream,
    signal,
  });
  const answered = Promise.withResolvers<{ readonly answer: IncomingMessage; readonly rest: Buffer }>();
  asking.once('connect', (answer, _socket, rest) => answered.resolve({ answer, rest }));
  asking.on('error', (error) =>
    answered.reject(new ProxyFailed(texts.proxy_unclear(nameOfProxy(proxy), messageOf(error)))),
  );
  asking.end();
  const { answer, rest } = await answered.promise;
  const { statusCode: status = 0, statusMessage = '', headers } = answer;
  if (status < 200 || status >= 300) {
    const isLogin = status === login_required;
    const remedy = isLogin ? remedyOfLogin(proxy, headers['proxy-authenticate']) : texts.proxy_remedy(status);
    const reason = `${status} ${statusMessage}`.trim();
    throw new ProxyFailed(texts.proxy_refused(nameOfProxy(proxy), authority, reason, remedy));
  }
  if (rest.length > 0) stream.unshift(rest);
  return stream;
}

/** `offered`: the schemes that the proxy takes a login by (RFC 9110 section 11.7.1). */
function remedyOfLogin({ username }: Proxy, offered = ''): string {
  const challenges = offered.split(/,\s*(?=[\w-]+(?:\s|,|$))/u).filter(Boolean);
  const schemes = challenges.map((each) => cleanText((each.split(' ')[0] ?? '').slice(0, scheme_chars_max)));
  const isOther = schemes.length > 0 && !schemes.some((each) => /^basic$/iu.test(each));
  if (isOther) return texts.proxy_login_unknown(schemes.slice(0, schemes_max).join(' or '));
  return username === undefined ? texts.proxy_login_missing : texts.proxy_login_refused;
}

async function socksTo(stream: Duplex, proxy: Proxy, destination: Place): Promise<Duplex> {
  const { host, port, username, password = '' } = proxy;
  try {
    const { socket } = await SocksClient.createConnection({
      proxy: { host, port, type: 5, ...(username !== undefined && { userId: username, password }) },
      command: 'connect',
      destination,
      existing_socket: stream,
      timeout: no_timeout_ms,
    });
    return socket;
  } catch (error) {
    const place = `${destination.host}:${destination.port}`;
    throw new ProxyFailed(texts.socks_refused(nameOfProxy(proxy), place, messageOf(error)));
  }
}
