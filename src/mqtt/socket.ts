/** Opens the stream that an MQTT session runs on: TCP, through a proxy where one is configured, TLS, and WebSocket. */
import { once } from 'node:events';
import { connect as connectTcp, isIP, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import tls, { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { createWebSocketStream, WebSocket } from 'ws';
import { address_attempt_ms } from '../platform/address-attempts.ts';
import { trustSystemAuthorities } from '../platform/authorities.ts';
import { brokerPlace, isTls, isWebSocket, type Place } from '../platform/broker-address.ts';
import type { BrokerOptions } from './broker.ts';
import { isBroken } from './connect-failed.ts';
import { broker_addresses, type BrokerAddresses } from './broker-addresses.ts';
import { proxyOf, tunnel } from './proxy.ts';
import { texts } from './texts.ts';

export type BrokerEndpoint = Pick<
  BrokerOptions,
  'url' | 'ca' | 'cert' | 'key' | 'proxy' | 'alpn' | 'tls_name' | 'websocket'
>;

export type BrokerSocket = Socket;

/** What a session runs on: connected, with all handshakes below MQTT done. */
export interface Transport {
  readonly stream: Duplex;
  /** What the bytes leave by; left out where there is no socket of the operating system. */
  readonly tcp?: Socket;
  /** To be called where no broker answers on it, so that another address of the name is tried first the next time. */
  readonly failed?: () => void;
}

/** Rejects with the error of the first step that failed, and when `signal` aborts; nothing stays open then. */
export type OpenTransport = (endpoint: BrokerEndpoint, signal: AbortSignal) => Promise<Transport>;

/** A TCP socket that was made already, and the address that it is to be connected to. */
export interface OwnSocket {
  readonly fd: number;
  readonly ip: string;
}

interface Ways {
  readonly addresses?: Pick<BrokerAddresses, 'lookup' | 'connected' | 'failed'>;
  /** To be connected, in place of a new one. */
  readonly own?: OwnSocket | undefined;
  /** Called with the socket before it is connected. */
  readonly onTcp?: (tcp: Socket) => void;
}

const default_websocket = { subprotocol: 'mqtt', headers: {} } as const;
/** The largest message of a WebSocket. Brokers send a packet in each, or less. */
const websocket_bytes_max = 16 * 1024 * 1024;

/** Where packets to the broker are sent: the proxy, or the broker itself. */
export function nextPlace(endpoint: Pick<BrokerEndpoint, 'url' | 'proxy'>): Place {
  return proxyOf(endpoint) ?? brokerPlace(new URL(endpoint.url));
}

/** Small packets leave at once. */
export async function openTransport(
  endpoint: BrokerEndpoint,
  signal: AbortSignal,
  ways: Ways = {},
): Promise<Transport> {
  const url = new URL(endpoint.url);
  let step: keyof typeof texts.cut | undefined;
  const finish = async (tunnelled: Duplex): Promise<Duplex> => {
    let stream = tunnelled;
    if (isTls(url)) {
      step = 'tls';
      if (endpoint.ca === undefined) trustSystemAuthorities();
      stream = await secured(connectTls({ socket: stream, ...tlsOptions(endpoint) }), signal);
    }
    step = 'websocket';
    return isWebSocket(url) ? upgraded(stream, endpoint, signal) : stream;
  };
  try {
    return await opened(endpoint, signal, ways, finish);
  } catch (error) {
    if (step === 'tls' && (isBroken(error) || signal.aborted)) {
      const isDue = offerOtherGroups() && !signal.aborted && ways.own === undefined;
      if (isDue) return openTransport(endpoint, signal, ways);
    }
    throw step && isBroken(error) ? Object.assign(new Error(texts.cut[step]), { code: 'CUT' }) : error;
  }
}

/** Without ML-KEM, whose key makes the first message of TLS larger than a packet. */
export const small_groups = 'X25519:P-256:P-384';

/**
 * Filters and load balancers end connections that begin with a large message, or lose it without a word (openssl/openssl#27601,
 * golang/go#80573, haproxy/haproxy#3148, tdlib/telegram-bot-api#896; tldr.fail): the next handshake has the other size, and so has
 * whatever else this process connects by TLS. Returns whether it is small now.
 */
function offerOtherGroups(): boolean {
  const isSmall = tls.DEFAULT_ECDH_CURVE !== small_groups;
  tls.DEFAULT_ECDH_CURVE = isSmall ? small_groups : 'auto';
  return isSmall;
}

/** As `openTransport`, without TLS and WebSocket: bytes reach the broker as they are written. */
export async function openTunnel(
  endpoint: BrokerEndpoint,
  signal: AbortSignal,
  ways: Ways = {},
): Promise<Transport> {
  return opened(endpoint, signal, ways, async (stream) => stream);
}

async function opened(
  endpoint: BrokerEndpoint,
  signal: AbortSignal,
  { addresses = broker_addresses, own, onTcp }: Ways,
  finish: (stream: Duplex) => Promise<Duplex>,
): Promise<Transport> {
  const proxy = proxyOf(endpoint);
  const broker = brokerPlace(new URL(endpoint.url));
  const { host, port } = proxy ?? broker;
  const tcp = own
    ? // With a name it would be read from before it is connected, which fails.
      new Socket({ fd: own.fd }).connect({ host: own.ip, port })
    : connectTcp({
        host,
        port,
        lookup: addresses.lookup,
        autoSelectFamilyAttemptTimeout: address_attempt_ms,
      });
  tcp.setNoDelay(true);
  onTcp?.(tcp);
  let failure: Error | undefined;
  tcp.on('error', (error) => (failure ??= error));
  const stop = (): unknown => tcp.destroy();
  signal.addEventListener('abort', stop, { once: true });
  let address: string | undefined;
  const failed = (): void => addresses.failed(host, address);
  try {
    await once(tcp, 'connect', { signal });
    address = tcp.remoteAddress;
    const first = proxy?.kind === 'https' ? await securedProxy(tcp, proxy.host, signal) : tcp;
    const stream = await finish(proxy ? await tunnel(first, proxy, broker, signal) : first);
    addresses.connected(host, address);
    return { stream, tcp, failed };
  } catch (error) {
    tcp.destroy();
    failed();
    // The library ends the socket with its own error.
    throw error instanceof NoWebSocket ? error : (failure ?? error);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** Resolves once a socket that is not one of the operating system is connected. */
export async function transportOver(stream: Duplex, signal: AbortSignal): Promise<Transport> {
  try {
    await once(stream, 'connect', { signal });
    return { stream };
  } catch (error) {
    stream.on('error', () => undefined).destroy();
    throw error;
  }
}

async function securedProxy(tcp: Socket, host: string, signal: AbortSignal): Promise<Duplex> {
  trustSystemAuthorities();
  return secured(connectTls({ socket: tcp, ...(isIP(host) === 0 && { servername: host }), host }), signal);
}

/** Resolves after the handshake. */
async function secured(socket: TLSSocket, signal: AbortSignal): Promise<Duplex> {
  // It ends with the socket below it, also while nobody else listens.
  socket.on('error', () => undefined);
  await once(socket, 'secureConnect', { signal });
  return socket;
}

/** The options of TLS with the broker, whatever the environment says. */
export function tlsOptions(endpoint: BrokerEndpoint): ConnectionOptions {
  const { ca, cert, key, alpn, tls_name } = endpoint;
  const host = tls_name ?? brokerPlace(new URL(endpoint.url)).host;
  return {
    minVersion: 'TLSv1.2',
    rejectUnauthorized: true,
    // The name that is checked.
    host,
    ...(isIP(host) === 0 && { servername: host }),
    ...(alpn !== undefined && { ALPNProtocols: [...alpn] }),
    // A file of intermediate authorities alone is enough elsewhere, too (eclipse-mosquitto/mosquitto#1518, hivemq/mqtt-cli#132).
    ...(ca !== undefined && { ca, allowPartialTrustChain: true }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
  };
}

/** A server that answers the request for a WebSocket with something else. */
export class NoWebSocket extends Error {
  override readonly name = 'NoWebSocket';
  readonly code = 'NO_WEBSOCKET';
}

/** MQTT 5 section 6, the same in 3.1.1: binary messages of the subprotocol `mqtt`, whose limits are not those of packets. */
async function upgraded(stream: Duplex, endpoint: BrokerEndpoint, signal: AbortSignal): Promise<Duplex> {
  const { subprotocol, headers } = endpoint.websocket ?? default_websocket;
  const socket = new WebSocket(endpoint.url, subprotocol, {
    createConnection: () => stream,
    headers: { ...headers },
    perMessageDeflate: false,
    maxPayload: websocket_bytes_max,
  });
  socket.once('unexpected-response', (asked, { statusCode = 0, headers: { location } }) => {
    asked.destroy();
    socket.emit('error', new NoWebSocket(texts.no_websocket(statusCode, location)));
  });
  socket.on('error', () => undefined);
  await once(socket, 'open', { signal }).catch((error: unknown) => {
    // Errors of the library have no code; those of sockets and ours have.
    const isOfLibrary = error instanceof Error && !('code' in error);
    throw isOfLibrary ? new NoWebSocket(texts.websocket_unclear(error.message)) : error;
  });
  return createWebSocketStream(socket);
}
