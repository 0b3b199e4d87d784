/** A connection to the server of a test, over one link. */
import { lookup } from 'node:dns/promises';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { DeviceUnreachable } from '../../src/platform/errors.ts';
import { reasonOf } from '../../src/platform/linux/bound-fd.ts';
import { connectTcp, knockTcp } from '../../src/platform/linux/bound-tcp.ts';
import { within } from '../../src/platform/time.ts';
import { texts } from './texts.ts';

const lookup_timeout_ms = 5_000;
const connect_timeout_ms = 10_000;
const knock_timeout_ms = 5_000;
const addresses_max = 4;
const knocks = 3;

export interface Target {
  readonly url: URL;
  readonly host_ip: string;
  readonly port: number;
  readonly device: string;
  /** PEM of the authority; undefined: the authorities of Node.js. */
  readonly ca: string | undefined;
}

interface Way {
  readonly device: string;
  readonly ca: string | undefined;
  readonly signal: AbortSignal;
}

/**
 * Finds an address of the server that answers by the link: not every link has IPv6, nor IPv4. The question itself goes by
 * whatever way the system asks its name servers. Rejects with `DeviceUnreachable` when none answers.
 */
export async function findTarget(url: URL, { device, ca, signal }: Way): Promise<Target> {
  const host = url.hostname.replaceAll(/[[\]]/gu, '');
  const found = await within(lookup_timeout_ms, lookup(host, { all: true, order: 'ipv4first' }), signal);
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
  let code: string = texts.name_server_silent;
  for (const { address: host_ip } of found?.slice(0, addresses_max) ?? []) {
    const echo = await knockTcp({ device, host_ip, port, timeout_ms: knock_timeout_ms, signal });
    if ('rtt_ms' in echo) return { url, host_ip, port, device, ca };
    ({ code } = echo);
  }
  throw new DeviceUnreachable(texts.connect_failed(host, port, device, reasonOf(code)));
}

export interface Connection {
  readonly socket: Socket;
  /** The same without TLS. */
  readonly tcp: Socket;
}

/** Connects by the link, with TLS where the URL asks for it. The socket ends with `signal`. */
export async function openConnection(target: Target, signal: AbortSignal): Promise<Connection> {
  const { url, host_ip, port, device } = target;
  const socket = await connectTcp({ device, host_ip, port, timeout_ms: connect_timeout_ms, signal });
  socket.on('error', () => undefined);
  const destroy = (): void => void socket.destroy();
  signal.addEventListener('abort', destroy, { once: true });
  socket.once('close', () => signal.removeEventListener('abort', destroy));
  if (signal.aborted) destroy();
  return { socket: url.protocol === 'https:' ? await withTls(socket, target) : socket, tcp: socket };
}

async function withTls(socket: Socket, { url, ca }: Target): Promise<Socket> {
  const secure = connectTls({
    socket,
    ...(/^[\d.]+$|^\[/u.test(url.hostname) ? {} : { servername: url.hostname }),
    ...(ca === undefined ? {} : { ca }),
    host: url.hostname,
  });
  const done = Promise.withResolvers<undefined>();
  secure.once('secureConnect', () => done.resolve(undefined));
  secure.on('error', (error) => done.reject(error));
  secure.once('close', () => done.reject(new DeviceUnreachable(texts.closed_during_tls(url.host))));
  const timer = setTimeout(
    () => done.reject(new DeviceUnreachable(texts.tls_timeout(url.host))),
    connect_timeout_ms,
  );
  try {
    await done.promise;
    return secure;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** Middle one of a few round trips of the TCP handshake, milliseconds; null when there was no answer. */
export async function measureLatency(target: Target, signal: AbortSignal): Promise<number | null> {
  const rtts_ms: number[] = [];
  for (let count = 0; count < knocks && !signal.aborted; count += 1) {
    const echo = await knockTcp({ ...target, timeout_ms: connect_timeout_ms, signal });
    if ('rtt_ms' in echo) rtts_ms.push(echo.rtt_ms);
  }
  const middle = rtts_ms.sort((a, b) => a - b)[Math.floor(rtts_ms.length / 2)];
  return middle === undefined ? null : Math.round(middle * 100) / 100;
}
