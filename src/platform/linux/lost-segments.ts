/** Finds TCP connections whose large segments are lost on the way, and opens sockets that have only small ones. */
import { openBound, sock_stream } from './bound-fd.ts';
import { libc } from './libc.ts';
import { type Family, familyOf } from './socket-address.ts';
import { askInt, bytesOf, ipproto_tcp, sol_socket, tiocoutq } from './socket-options.ts';
import { tcpInfo } from './tcp-info.ts';

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
