/** Reads the kernel's neighbour table with one rtnetlink dump (rtnetlink(7), RTM_GETNEIGH); it takes no right and no program. */
import { dumpTable, readAttributes } from './netlink.ts';
import { ipv6Text } from './socket-address.ts';

/** One device that the kernel knows on one of its links. */
export interface Neighbour {
  readonly ifindex: number;
  readonly ip: string;
  /** Lower case, colons. */
  readonly mac: string;
  /** `unsure`: it was confirmed `confirmed_s` ago and not since. */
  readonly state: 'reachable' | 'unsure' | 'permanent';
  /** Seconds since the device was last known to be there. */
  readonly confirmed_s: number;
}

/** RTM_GETNEIGH, RTM_NEWNEIGH, `struct ndmsg`. */
const table = { of: 'neighbours', ask: 30, answer: 28, header_bytes: 12 } as const;
const nda_dst = 1;
const nda_lladdr = 2;
const nda_cacheinfo = 3;
const af_inet = 2;
const af_inet6 = 10;
/** The kernel reports ages in USER_HZ, which is 100 on every machine that Node.js runs on. */
const ticks_per_second = 100;
const states: Readonly<Record<number, Neighbour['state']>> = {
  0x02: 'reachable',
  0x04: 'unsure',
  0x08: 'reachable',
  0x10: 'reachable',
  0x80: 'permanent',
};

/**
 * Reads the neighbours with a link address: neighbours that did not answer are left out. Rejects with `DeviceUnreachable`
 * when the kernel does not list them. All integers are little-endian, as on the machines that Node.js is built for here.
 */
export async function readNeighbours(): Promise<readonly Neighbour[]> {
  const bodies = await dumpTable(table);
  return bodies.flatMap((body) => decodeNeighbour(body) ?? []);
}

/** One entry of the table; undefined for one without a link address and for what is cut short. Pure. */
export function decodeNeighbour(bytes: Buffer): Neighbour | undefined {
  if (bytes.length < table.header_bytes) return undefined;
  const state = states[bytes.readUInt16LE(8)];
  const attributes = readAttributes(bytes, table.header_bytes);
  const ip = ipOf(bytes.readUInt8(0), attributes.get(nda_dst));
  const link = attributes.get(nda_lladdr);
  const cache = attributes.get(nda_cacheinfo);
  if (!state || ip === undefined || link?.length !== 6 || !cache || cache.length < 4) return undefined;
  const mac = [...link].map((byte) => byte.toString(16).padStart(2, '0')).join(':');
  const confirmed_s = cache.readUInt32LE(0) / ticks_per_second;
  return { ifindex: bytes.readInt32LE(4), ip, mac, state, confirmed_s };
}

function ipOf(family: number, address: Buffer | undefined): string | undefined {
  if (family === af_inet && address?.length === 4) return address.join('.');
  if (family === af_inet6 && address?.length === 16) return ipv6Text(address);
  return undefined;
}
