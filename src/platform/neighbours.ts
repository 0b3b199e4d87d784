/** Reads the kernel's neighbour table with one rtnetlink dump (rtnetlink(7), RTM_GETNEIGH); it takes no right and no program. */
import { DeviceUnreachable } from '../errors.ts';
import { reasonOf } from './bound-fd.ts';
import { libc } from './libc.ts';
import { ipv6Text } from './socket-address.ts';

/** One device that the kernel knows on one of its links. */
export interface Neighbour {
  readonly ifindex: number;
  readonly ip: string;
  /** Lower case, colons. */
  readonly mac: string;
  /** `unsure`: it was there `confirmed_s` ago, and nobody has asked since. */
  readonly state: 'reachable' | 'unsure' | 'permanent';
  /** Seconds since the device was last known to be there. */
  readonly confirmed_s: number;
}

const af_netlink = 16;
const sock_raw_nonblock_cloexec = 3 | 0o4000 | 0o2000000;
const nlmsg_error = 2;
const nlmsg_done = 3;
const rtm_newneigh = 28;
const rtm_getneigh = 30;
const request_and_dump = 0x1 | 0x300;
const header_bytes = 16;
const ndmsg_bytes = 12;
const nda_dst = 1;
const nda_lladdr = 2;
const nda_cacheinfo = 3;
const af_inet = 2;
const af_inet6 = 10;
/** The kernel tells ages in USER_HZ, which is 100 on every machine that Node.js runs on. */
const ticks_per_second = 100;
const states: Readonly<Record<number, Neighbour['state']>> = {
  0x02: 'reachable',
  0x04: 'unsure',
  0x08: 'reachable',
  0x10: 'reachable',
  0x80: 'permanent',
};

const answer_bytes_max = 65_536;
const answers_max = 256;

/**
 * The neighbours that have a link address: those that did not answer are left out. Rejects with `DeviceUnreachable`
 * when the kernel does not tell. All integers are little-endian, as on the machines that Node.js is built for here.
 */
export async function readNeighbours(): Promise<readonly Neighbour[]> {
  const c = await libc();
  const fd = c.socket(af_netlink, sock_raw_nonblock_cloexec, 0);
  const failed = (): DeviceUnreachable =>
    new DeviceUnreachable(`the kernel does not tell its neighbours: ${reasonOf(c.errno())}`);
  if (fd < 0) throw failed();
  try {
    const request = Buffer.alloc(header_bytes + ndmsg_bytes);
    request.writeUInt32LE(request.length, 0);
    request.writeUInt16LE(rtm_getneigh, 4);
    request.writeUInt16LE(request_and_dump, 6);
    if (c.sendto(fd, request, request.length, 0, null, 0) < 0) throw failed();
    const found: Neighbour[] = [];
    const answer = Buffer.alloc(answer_bytes_max);
    // The kernel fills the answers of a dump as they are fetched, so none of these waits.
    for (let count = 0; count < answers_max; count += 1) {
      const bytes = c.recvfrom(fd, answer, answer.length, 0, null, null);
      if (bytes < 0) throw failed();
      const { neighbours, isLast } = parseAnswer(answer.subarray(0, bytes));
      found.push(...neighbours);
      if (isLast) break;
    }
    return found;
  } finally {
    c.close(fd);
  }
}

/** Pure: the neighbours of one datagram of a dump, and whether the dump is over. What is cut short is left out. */
export function parseAnswer(bytes: Buffer): {
  readonly neighbours: readonly Neighbour[];
  readonly isLast: boolean;
} {
  const neighbours: Neighbour[] = [];
  for (let at = 0; at + header_bytes <= bytes.length;) {
    const length = bytes.readUInt32LE(at);
    const type = bytes.readUInt16LE(at + 4);
    if (type === nlmsg_done || type === nlmsg_error) return { neighbours, isLast: true };
    if (length < header_bytes || at + length > bytes.length) break;
    if (type === rtm_newneigh) {
      const neighbour = parseNeighbour(bytes.subarray(at + header_bytes, at + length));
      if (neighbour) neighbours.push(neighbour);
    }
    at += aligned(length);
  }
  return { neighbours, isLast: false };
}

function parseNeighbour(bytes: Buffer): Neighbour | undefined {
  if (bytes.length < ndmsg_bytes) return undefined;
  const state = states[bytes.readUInt16LE(8)];
  const attributes = parseAttributes(bytes.subarray(ndmsg_bytes));
  const ip = ipOf(bytes.readUInt8(0), attributes.get(nda_dst));
  const link = attributes.get(nda_lladdr);
  const cache = attributes.get(nda_cacheinfo);
  if (!state || ip === undefined || link?.length !== 6 || !cache || cache.length < 4) return undefined;
  const mac = [...link].map((byte) => byte.toString(16).padStart(2, '0')).join(':');
  const confirmed_s = cache.readUInt32LE(0) / ticks_per_second;
  return { ifindex: bytes.readInt32LE(4), ip, mac, state, confirmed_s };
}

function parseAttributes(bytes: Buffer): ReadonlyMap<number, Buffer> {
  const attributes = new Map<number, Buffer>();
  for (let at = 0; at + 4 <= bytes.length;) {
    const length = bytes.readUInt16LE(at);
    if (length < 4 || at + length > bytes.length) break;
    attributes.set(bytes.readUInt16LE(at + 2), bytes.subarray(at + 4, at + length));
    at += aligned(length);
  }
  return attributes;
}

function ipOf(family: number, address: Buffer | undefined): string | undefined {
  if (family === af_inet && address?.length === 4) return address.join('.');
  if (family === af_inet6 && address?.length === 16) return ipv6Text(address);
  return undefined;
}

function aligned(length: number): number {
  return (length + 3) & ~3;
}
