/**
 * Proxies between this machine and the broker: HTTP CONNECT (RFC 9110 section 9.3.6) and SOCKS5 (RFC 1928). The proxy looks up the
 * name of the broker.
 */
import { request } from 'node:http';
import { isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { SocksClient } from 'socks';
import type { Place } from '../platform/broker-address.ts';
import { messageOf } from '../platform/errors.ts';
import { nameOfProxy, type Proxy, proxyOfEnvironment, readProxy } from '../platform/proxy.ts';
import type { BrokerOptions } from './broker.ts';
import { texts } from './texts.ts';

const http_ok = 200;
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
  const answered = Promise.withResolvers<{
    readonly status: number;
    readonly reason: string;
    readonly rest: Buffer;
  }>();
  asking.once('connect', ({ statusCode = 0, statusMessage = '' }, _socket, rest) =>
    answered.resolve({ status: statusCode, reason: `${statusCode} ${statusMessage}`.trim(), rest }),
  );
  asking.on('error', (error) =>
    answered.reject(new ProxyFailed(texts.proxy_unclear(nameOfProxy(proxy), messageOf(error)))),
  );
  asking.end();
  const { status, reason, rest } = await answered.promise;
  if (status !== http_ok)
    throw new ProxyFailed(texts.proxy_refused(nameOfProxy(proxy), authority, reason, status));
  if (rest.length > 0) stream.unshift(rest);
  return stream;
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
