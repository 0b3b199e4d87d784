/** What the kernel knows of a TCP connection (TCP_INFO of tcp(7)). */
import type { Libc } from './libc.ts';
import { bytesOf, ipproto_tcp } from './socket-options.ts';

const tcp_info = 11;
const tcp_info_bytes = 148;
const state_established = 1;
const us_per_ms = 1_000;
/** Offsets in `struct tcp_info`; those of 32 bits in words. */
const offset = { state: 0, retransmits: 2 } as const;
const word = { unacked: 6, sacked: 7, pmtu: 15, rtt: 17, total_retrans: 25, notsent: 36 } as const;

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
  /** Segments that were sent again, those of the handshake included. */
  readonly retransmits_total: number;
}

/** Null for a descriptor that is not an open TCP socket. */
export function tcpInfo(c: Libc, fd: number): TcpInfo | null {
  const info = new Uint8Array(tcp_info_bytes);
  if (c.getsockopt(fd, ipproto_tcp, tcp_info, info, bytesOf(tcp_info_bytes)) !== 0) return null;
  const words = new Uint32Array(info.buffer);
  const rtt_us = words[word.rtt] ?? 0;
  return {
    isEstablished: info[offset.state] === state_established,
    retransmits: info[offset.retransmits] ?? 0,
    unacked: words[word.unacked] ?? 0,
    sacked: words[word.sacked] ?? 0,
    unsent_bytes: words[word.notsent] ?? 0,
    mtu: words[word.pmtu] ?? 0,
    rtt_ms: rtt_us > 0 ? rtt_us / us_per_ms : null,
    retransmits_total: words[word.total_retrans] ?? 0,
  };
}
