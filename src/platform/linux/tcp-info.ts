/** What the kernel knows of a TCP connection (TCP_INFO of tcp(7)). */
import { type Libc, libc } from './libc.ts';
import { bytesOf, ipproto_tcp, askInt, sol_socket, tiocoutq } from './socket-options.ts';
import { openBound, sock_stream } from './bound-fd.ts';
import { type Family, familyOf } from './socket-address.ts';

const tcp_info = 11;
const tcp_info_bytes = 152;
const state_established = 1;
const us_per_ms = 1_000;
/** What the kernel has in place of a shortest round trip before the first one. */
const never_us = 2 ** 32 - 1;
/** Offsets in `struct tcp_info`; those of 32 bits in words. */
const offset = { state: 0, retransmits: 2 } as const;
const word = {
  unacked: 6,
  sacked: 7,
  last_data_recv: 13,
  pmtu: 15,
  rtt: 17,
  total_retrans: 25,
  bytes_acked: 30,
  bytes_received: 32,
  notsent: 36,
  min_rtt: 37,
} as const;

export interface TcpInfo {
  readonly isEstablished: boolean;
  /** How often the oldest segment without an acknowledgement was sent again, since anything was acknowledged. */
  readonly retransmits: number;
  /** Segments that were sent and not acknowledged. */
  readonly unacked: number;
  /** Those of them that have arrived behind a missing one. */
  readonly sacked: number;
  /** Bytes that were written and not sent yet; 0 before Linux 4.6. */
  readonly unsent_bytes: number;
  /** MTU of the path, as far as the kernel knows it. */
  readonly mtu: number;
  /** The kernel's own figure, free of this process's delays; null: none yet. */
  readonly rtt_ms: number | null;
  /** The shortest one of the last minutes; null: none yet, or before Linux 4.6. */
  readonly rtt_min_ms: number | null;
  /** What the other side has acknowledged since the connection was made; 0 before Linux 4.1. */
  readonly acked_bytes: number;
  /** Segments that were sent again, those of the handshake included. */
  readonly retransmits_total: number;
  /** Time since the far side sent data last; null: it has sent none. Acknowledgements alone are none. */
  readonly silent_ms: number | null;
}

/** Null for a descriptor that is not an open TCP socket. */
export function tcpInfo(c: Libc, fd: number): TcpInfo | null {
  const info = new Uint8Array(tcp_info_bytes);
  if (c.getsockopt(fd, ipproto_tcp, tcp_info, info, bytesOf(tcp_info_bytes)) !== 0) return null;
  const words = new Uint32Array(info.buffer);
  const timeOf = (us = 0): number | null => (us > 0 && us < never_us ? us / us_per_ms : null);
  return {
    isEstablished: info[offset.state] === state_established,
    retransmits: info[offset.retransmits] ?? 0,
    unacked: words[word.unacked] ?? 0,
    sacked: words[word.sacked] ?? 0,
    unsent_bytes: words[word.notsent] ?? 0,
    mtu: words[word.pmtu] ?? 0,
    rtt_ms: timeOf(words[word.rtt]),
    rtt_min_ms: timeOf(words[word.min_rtt]),
    acked_bytes: counterOf(words, word.bytes_acked),
    retransmits_total: words[word.total_retrans] ?? 0,
    silent_ms: counterOf(words, word.bytes_received) > 0 ? (words[word.last_data_recv] ?? 0) : null,
  };
}

/** A counter of 64 bits, 0 before Linux 4.1. */
function counterOf(words: Uint32Array, at: number): number {
  return (words[at] ?? 0) + (words[at + 1] ?? 0) * 2 ** 32;
}

const so_meminfo = 55;
const tcp_maxseg = 2;
const siocinq = 0x54_1b;
/** What every network must carry (RFC 791, RFC 8200), without the headers of IP and TCP. */
const segment_bytes: Readonly<Record<Family, number>> = { 4: 576 - 40, 6: 1_280 - 60 };
/** A segment that was sent again so many times without an acknowledgement is missing. */
const repeats_min = 2;

/** A connection as it is now. */
export interface SegmentLook {
  /** A segment that is large, or that others have overtaken, was sent again and again; or some of the far side are here without one before them. */
  readonly isMissing: boolean;
  /** Of the path, as far as the kernel knows it. */
  readonly mtu: number;
}

export interface Segments {
  /** Null for a descriptor that is closed. */
  readonly look: (fd: number) => SegmentLook | null;
  /** Opens a socket that sends and, by its announcement, receives only segments that every network carries. Throws as `openBound`. */
  readonly openSmall: (host_ip: string) => number;
}

/** Loads the functions once; calls are synchronous then. */
export async function segments(): Promise<Segments> {
  const c = await libc();
  /** Bytes that came and were not read; once those in order were, only those out of order are left. */
  const heldBytes = (fd: number): number => {
    const held = new Uint32Array(1);
    const failed = c.getsockopt(fd, sol_socket, so_meminfo, new Uint8Array(held.buffer), bytesOf(4)) !== 0;
    return failed ? 0 : (held[0] ?? 0);
  };
  return {
    look(fd) {
      const info = tcpInfo(c, fd);
      if (info === null) return null;
      const { retransmits, unacked, sacked, unsent_bytes, mtu } = info;
      const areLarge = askInt(c, fd, tiocoutq) - unsent_bytes > unacked * segment_bytes[4];
      const isOneSentLost = retransmits >= repeats_min && (sacked > 0 || areLarge);
      const isOneOfFarLost = heldBytes(fd) > 0 && askInt(c, fd, siocinq) === 0;
      return { isMissing: isOneSentLost || isOneOfFarLost, mtu };
    },
    openSmall(host_ip) {
      const family = familyOf(host_ip) ?? 4;
      const fd = openBound(c, { family }, { type: sock_stream, protocol: ipproto_tcp });
      c.setsockopt(fd, ipproto_tcp, tcp_maxseg, bytesOf(segment_bytes[family]), 4);
      return fd;
    },
  };
}
