/** TCP by one network device: the handshake is done on the bare descriptor, since Node.js cannot bind before it connects. */
import { Socket } from 'node:net';
import { DeviceUnreachable } from '../errors.ts';
import { texts } from '../texts.ts';
import { type Binding, openBound, reasonOf, sock_stream } from './bound-fd.ts';
import { type Libc, libc } from './libc.ts';
import { encodeSocketAddress, familyOf } from './socket-address.ts';
import { bytesOf, ipproto_tcp, so_linger, sol_socket } from './socket-options.ts';
import { tcpInfo } from './tcp-info.ts';

export interface TcpTarget {
  /** Interface name; undefined: the routing table chooses. */
  readonly device?: string | undefined;
  /** IPv4 or IPv6, no name: what resolves names does not know of the device. */
  readonly host_ip: string;
  readonly port: number;
  readonly timeout_ms: number;
  readonly signal?: AbortSignal | undefined;
}

/** How a handshake ended. `refused` is an answer of the far side too: it is there. */
type Handshake =
  | {
      readonly outcome: 'connected';
      readonly fd: number;
      readonly rtt_ms: number;
      readonly isRepeated: boolean;
    }
  | { readonly outcome: 'refused'; readonly rtt_ms: number; readonly isRepeated: boolean }
  | { readonly outcome: 'failed'; readonly code: string };

const so_error = 4;

/**
 * Connects by the device. Rejects with `DeviceUnreachable` (no such device, no route, refused, no answer within
 * `timeout_ms`, aborted) or `DeviceRejected` (a right is missing). The socket is ready for TLS on top of it.
 */
export async function connectTcp(target: TcpTarget): Promise<Socket> {
  const result = await handshake(await libc(), target);
  if (result.outcome === 'connected') return new Socket({ fd: result.fd, readable: true, writable: true });
  const code = result.outcome === 'refused' ? 'ECONNREFUSED' : result.code;
  const way = target.device === undefined ? '' : ` over ${target.device}`;
  throw new DeviceUnreachable(texts.connect_failed(target.host_ip, target.port, way, reasonOf(code)), {
    cause: Object.assign(new Error(code), { code }),
  });
}

/**
 * Result of one connection attempt: the time of the first round trip, or why there was none. `isRepeated`: the kernel had to
 * send its first packet more than once, so one of them or its answer was lost.
 */
export type TcpEcho = { readonly rtt_ms: number; readonly isRepeated: boolean } | { readonly code: string };

/** Knocks at a port and hangs up with a reset: the cheapest question that a TCP server answers. */
export async function knockTcp(target: TcpTarget): Promise<TcpEcho> {
  const c = await libc();
  const result = await handshake(c, target);
  if (result.outcome === 'failed') return { code: result.code };
  if (result.outcome === 'connected') {
    // Lingering for no time closes with RST: one packet instead of three, and no TIME_WAIT at either side.
    c.setsockopt(result.fd, sol_socket, so_linger, bytesOf(1, 0), 8);
    c.close(result.fd);
  }
  return { rtt_ms: result.rtt_ms, isRepeated: result.isRepeated };
}

async function handshake(c: Libc, target: TcpTarget): Promise<Handshake> {
  const family = familyOf(target.host_ip);
  if (family === null) throw new TypeError(texts.not_an_address(target.host_ip));
  if (target.signal?.aborted) return { outcome: 'failed', code: 'ECANCELED' };
  const binding: Binding = { device: target.device, family };
  const fd = openBound(c, binding, { type: sock_stream, protocol: ipproto_tcp });
  const address = encodeSocketAddress(target.host_ip, target.port);
  const started_ms = performance.now();
  const code = c.connect(fd, address, address.length) === 0 ? null : c.errno();
  const ended = code === 'EINPROGRESS' ? await settled(c, fd, target) : { code, at_ms: performance.now() };
  const rtt_ms = ended.at_ms - started_ms;
  const info = tcpInfo(c, fd);
  const isRepeated = info !== null && info.retransmits_total > 0;
  if (ended.code === null) return { outcome: 'connected', fd, rtt_ms: info?.rtt_ms ?? rtt_ms, isRepeated };
  c.close(fd);
  if (ended.code === 'ECONNREFUSED') return { outcome: 'refused', rtt_ms, isRepeated };
  return { outcome: 'failed', code: ended.code };
}

interface Ended {
  /** Null: connected. */
  readonly code: string | null;
  readonly at_ms: number;
}

/** Waits for the descriptor to become writable, which is how the kernel signals the end of a connection attempt. */
async function settled(c: Libc, fd: number, { timeout_ms, signal }: TcpTarget): Promise<Ended> {
  return new Promise((resolve) => {
    let over = false;
    const end = (code: string | null): void => {
      if (over) return;
      over = true;
      unwatch();
      clearTimeout(timer);
      signal?.removeEventListener('abort', cancel);
      const ended = { code, at_ms: performance.now() };
      setImmediate(() => resolve(ended));
    };
    const cancel = (): void => end('ECANCELED');
    const unwatch = c.watch(fd, 'writable', () => end(pendingError(c, fd)));
    // After a pause of this process timers come before sockets: the answer may be there already.
    const timer = setTimeout(
      () => end(tcpInfo(c, fd)?.isEstablished === true ? null : 'ETIMEDOUT'),
      timeout_ms,
    );
    signal?.addEventListener('abort', cancel, { once: true });
  });
}

function pendingError(c: Libc, fd: number): string | null {
  const error = new Int32Array(1);
  const length = new Uint32Array([4]);
  c.getsockopt(fd, sol_socket, so_error, new Uint8Array(error.buffer), new Uint8Array(length.buffer));
  return error[0] === 0 ? null : c.errnoName(error[0] ?? 0);
}
