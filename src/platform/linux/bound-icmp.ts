/** ICMP echo by one network device without a child process: datagram sockets where they are allowed, raw ones else. */
import { randomBytes } from 'node:crypto';
import { DeviceRejected } from '../errors.ts';
import { texts } from '../texts.ts';
import { type Binding, openBound, sock_dgram, sock_raw } from './bound-fd.ts';
import { type Libc, libc } from './libc.ts';
import {
  canonicalIp,
  decodeSocketAddress,
  encodeSocketAddress,
  type Family,
  socket_address_bytes,
} from './socket-address.ts';

export interface EchoReply {
  /** Canonical text: compare it with `canonicalIp` of the target. */
  readonly from: string;
  readonly sequence: number;
  readonly payload: Buffer;
  /** When the kernel got it, on the clock of `performance.now()`; delays of this process are not in it. */
  readonly received_ms: number;
}

export interface EchoSocket {
  /**
   * Sends an echo request; answers null when it left, else the code of the refusal (`ENETUNREACH`). The kernel or a NAT
   * may change the identifier, so the payload must identify the request.
   */
  send(host_ip: string, sequence: number, payload: Uint8Array): string | null;
  close(): void;
}

interface EchoOptions extends Binding {
  readonly onReply: (reply: EchoReply) => void;
}

const icmp = 1;
const icmpv6 = 58;
const icmp_header_bytes = 8;
const echo_types = { 4: { request: 8, reply: 0 }, 6: { request: 128, reply: 129 } } as const;
const packet_bytes_max = 1_500;
/** Datagrams read in one go; the rest waits for the next round of the loop. */
const reads_max = 64;

/**
 * Opens a socket for echo requests. Rejects with `DeviceUnreachable` when the device is not there and with
 * `DeviceRejected` when neither kind of socket is allowed.
 */
export async function openIcmp({ device, family, onReply }: EchoOptions): Promise<EchoSocket> {
  const c = await libc();
  const { fd, raw } = openEither(c, { device, family });
  const identifier = randomBytes(2).readUInt16BE();
  const read = reader(c, fd, { family, has_ip_header: raw && family === 4 });
  let open = true;
  const unwatch = c.watch(fd, 'readable', () => {
    const replies = read();
    setImmediate(() => {
      for (const reply of replies) if (open) onReply(reply);
    });
  });
  return {
    send(host_ip, sequence, payload) {
      if (!open) return 'EBADF';
      const packet = echoRequest(family, { identifier, sequence, payload });
      const address = encodeSocketAddress(host_ip, 0);
      const sent = c.sendto(fd, packet, packet.length, 0, address, address.length);
      return sent < 0 ? c.errno() : null;
    },
    close() {
      if (!open) return;
      open = false;
      unwatch();
      c.close(fd);
    },
  };
}

function openEither(c: Libc, binding: Binding): { readonly fd: number; readonly raw: boolean } {
  const protocol = binding.family === 4 ? icmp : icmpv6;
  try {
    return { fd: openBound(c, binding, { type: sock_dgram, protocol }), raw: false };
  } catch (error) {
    if (!(error instanceof DeviceRejected)) throw error;
  }
  try {
    const fd = openBound(c, binding, { type: sock_raw, protocol });
    receiveRepliesOnly(c, fd, binding.family);
    return { fd, raw: true };
  } catch (error) {
    if (!(error instanceof DeviceRejected)) throw error;
    throw new DeviceRejected(texts.icmp_not_allowed, { cause: error });
  }
}

/** A raw socket would get every ICMP message of the machine: a filter passes echo replies only. */
function receiveRepliesOnly(c: Libc, fd: number, family: Family): void {
  const sol_raw = 255;
  const filter = 1;
  const { reply } = echo_types[family];
  const blocked = new Uint32Array(family === 4 ? 1 : 8).fill(0xffff_ffff);
  const word = reply >> 5;
  blocked[word] = (blocked[word] ?? 0) & ~(1 << (reply & 31));
  const mask = new Uint8Array(blocked.buffer);
  c.setsockopt(fd, family === 4 ? sol_raw : icmpv6, filter, mask, mask.length);
}

interface EchoRequest {
  readonly identifier: number;
  readonly sequence: number;
  readonly payload: Uint8Array;
}

function echoRequest(family: Family, { identifier, sequence, payload }: EchoRequest): Buffer {
  const packet = Buffer.alloc(icmp_header_bytes + payload.length);
  packet[0] = echo_types[family].request;
  packet.writeUInt16BE(identifier, 4);
  packet.writeUInt16BE(sequence & 0xffff, 6);
  packet.set(payload, icmp_header_bytes);
  // The kernel fills in the checksum of ICMPv6, which covers the source address, and of datagram sockets.
  if (family === 4) packet.writeUInt16BE(internetChecksum(packet), 2);
  return packet;
}

/** RFC 1071. */
function internetChecksum(packet: Buffer): number {
  let sum = 0;
  for (let at = 0; at < packet.length; at += 2) sum += ((packet[at] ?? 0) << 8) | (packet[at + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}

interface Shape {
  readonly family: Family;
  readonly has_ip_header: boolean;
}

/** Reads what has come; each read has the time at which the kernel received the datagram. */
function reader(c: Libc, fd: number, { family, has_ip_header }: Shape): () => EchoReply[] {
  const packet = Buffer.alloc(packet_bytes_max);
  const address = Buffer.alloc(socket_address_bytes);
  const address_bytes = new Uint32Array(1);
  const sinceReceived = receiveStamps(c, fd);
  const readOne = (): EchoReply | 'nothing' | 'other' => {
    address_bytes[0] = socket_address_bytes;
    const length = new Uint8Array(address_bytes.buffer);
    const bytes = c.recvfrom(fd, packet, packet.length, 0, address, length);
    if (bytes < 0) return 'nothing';
    // In this order: a pause of the process between the two makes an answer late, never earlier than its question.
    const since_received_ms = sinceReceived();
    const received_ms = performance.now() - since_received_ms;
    const from = decodeSocketAddress(address);
    const header_at = has_ip_header ? ((packet[0] ?? 0) & 0x0f) * 4 : 0;
    const message = packet.subarray(header_at, bytes);
    if (message.length < icmp_header_bytes || message[0] !== echo_types[family].reply) return 'other';
    if (from === null) return 'other';
    const payload = Buffer.from(message.subarray(icmp_header_bytes));
    return { from: canonicalIp(from), sequence: message.readUInt16BE(6), payload, received_ms };
  };
  return () => {
    const replies: EchoReply[] = [];
    for (let count = 0; count < reads_max; count += 1) {
      const reply = readOne();
      if (reply === 'nothing') break;
      if (reply !== 'other') replies.push(reply);
    }
    return replies;
  };
}

const siocgstampns = 0x8907;
const clock_realtime = 0;
/** A datagram does not wait longer than this in a living process: more means that the clock was set meanwhile. */
const lag_max_ms = 10_000;

/** How long ago the kernel got the datagram that was read last, milliseconds. 0 when that cannot be told. */
function receiveStamps(c: Libc, fd: number): () => number {
  const stamp = new BigInt64Array(2);
  const now = new BigInt64Array(2);
  const [stamp_bytes, now_bytes] = [new Uint8Array(stamp.buffer), new Uint8Array(now.buffer)];
  // The first question turns the stamps on, a moment later: the first datagrams may bear none and count as just received.
  c.ioctl(fd, siocgstampns, stamp_bytes);
  return () => {
    if (c.ioctl(fd, siocgstampns, stamp_bytes) !== 0) return 0;
    c.clock_gettime(clock_realtime, now_bytes);
    const [seconds, nanoseconds] = [(now[0] ?? 0n) - (stamp[0] ?? 0n), (now[1] ?? 0n) - (stamp[1] ?? 0n)];
    const lag_ms = Number(seconds) * 1e3 + Number(nanoseconds) / 1e6;
    return lag_ms >= 0 && lag_ms <= lag_max_ms ? lag_ms : 0;
  };
}
