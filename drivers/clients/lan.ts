/** Reads the local network from /sys/class/net: its links, their ports, and the stations on each port. */
import { join } from 'node:path';
import { exists, readNames, readText } from '../../src/toolkit/device/system-files.ts';
import type { ClientsOptions } from './options.ts';
import { readBytesUpTo, table_bytes_max } from '../../src/platform/bounded-file.ts';

export type Medium = 'wired' | 'wireless';

export interface LanLink {
  readonly name: string;
  readonly ifindex: number;
  /** Null: unknown, as behind a separate access point or on a bridge with ports of both kinds. */
  readonly medium: Medium | null;
  /** Stations on the ports of a bridge, by MAC. */
  readonly stations: ReadonlyMap<string, Station>;
}

interface Station {
  readonly medium: Medium | null;
  readonly age_s: number;
}

export interface Lan {
  readonly links: readonly LanLink[];
  /** MAC addresses of this machine, which is not a client of itself. */
  readonly own_macs: ReadonlySet<string>;
}

/** Reads the local network. Entries that cannot be read are left out. `known`: addresses that count however many others there are. */
export async function readLan(options: ClientsOptions, known: ReadonlySet<string>): Promise<Lan> {
  const dir = join(options.roots.sys, 'class/net');
  const names = (await readNames(dir)) ?? [];
  const addresses = await Promise.all(names.map(async (name) => readText(join(dir, name, 'address'))));
  const chosen =
    options.interfaces.length > 0
      ? names.filter((name) => options.interfaces.includes(name))
      : await filtered(names, async (name) => isLanBridge(dir, name));
  const links = await Promise.all(chosen.map(async (name) => readLink(dir, name, { options, known })));
  return {
    links: links.filter((link) => link !== undefined),
    own_macs: new Set(addresses.filter((mac) => mac !== undefined)),
  };
}

/** A bridge with a hardware port: those of containers and virtual machines have none. */
async function isLanBridge(dir: string, name: string): Promise<boolean> {
  const ports = (await readNames(join(dir, name, 'brif'))) ?? [];
  return (await filtered(ports, async (port) => exists(join(dir, port, 'device')))).length > 0;
}

interface Looking {
  readonly options: ClientsOptions;
  readonly known: ReadonlySet<string>;
}

async function readLink(
  dir: string,
  name: string,
  { options, known }: Looking,
): Promise<LanLink | undefined> {
  const ifindex = Number(await readText(join(dir, name, 'ifindex')));
  if (!Number.isInteger(ifindex) || ifindex <= 0) return undefined;
  const names = await readNames(join(dir, name, 'brif'));
  if (!names) return { name, ifindex, medium: await mediumOf(dir, name, options), stations: new Map() };
  const ports = new Map<number, Medium | null>();
  for (const port of names) {
    const number = Number(await readText(join(dir, port, 'brport/port_no')));
    if (Number.isInteger(number)) ports.set(number, await mediumOf(dir, port, options));
  }
  const kinds = new Set(ports.values());
  const [only = null] = kinds;
  const table = await readBytesUpTo(join(dir, name, 'brforward'), table_bytes_max).catch(() =>
    Buffer.alloc(0),
  );
  const stations = parseForwarding(table, ports, known);
  return { name, ifindex, medium: kinds.size === 1 ? only : null, stations };
}

async function mediumOf(dir: string, port: string, options: ClientsOptions): Promise<Medium | null> {
  if (options.access_point_ports.includes(port)) return null;
  const isWireless =
    (await exists(join(dir, port, 'phy80211'))) || (await exists(join(dir, port, 'wireless')));
  return isWireless ? 'wireless' : 'wired';
}

/** `struct __fdb_entry` of linux/if_bridge.h: MAC, port, is_local, age in USER_HZ, high byte of the port. */
const entry_bytes = 16;
const ticks_per_second = 100;
/** A host can send from as many addresses as it likes, and a bridge remembers them all for five minutes. */
export const strangers_max = 4_096;
const entries_max = 65_536;

/**
 * Parses the forwarding table. The bridge's own addresses and removed ports are left out, and so is what is beyond the limit
 * of addresses that are not `known`.
 */
export function parseForwarding(
  table: Buffer,
  ports: ReadonlyMap<number, Medium | null>,
  known: ReadonlySet<string> = new Set(),
): ReadonlyMap<string, Station> {
  const stations = new Map<string, Station>();
  const expected = new Set(Array.from(known, (mac) => mac.replaceAll(':', '')));
  const end = Math.min(table.length, entries_max * entry_bytes);
  let strangers = 0;
  for (let at = 0; at + entry_bytes <= end; at += entry_bytes) {
    const medium = ports.get(table.readUInt8(at + 6) + table.readUInt8(at + 12) * 256);
    if (table.readUInt8(at + 7) !== 0 || medium === undefined) continue;
    const digits = table.toString('hex', at, at + 6);
    if (!expected.has(digits) && (strangers += 1) > strangers_max) continue;
    const mac = digits.replaceAll(/..(?=.)/gu, '$&:');
    stations.set(mac, { medium, age_s: table.readUInt32LE(at + 8) / ticks_per_second });
  }
  return stations;
}

async function filtered<T>(all: readonly T[], keep: (each: T) => Promise<boolean>): Promise<readonly T[]> {
  const kept = await Promise.all(all.map(keep));
  return all.filter((_, at) => kept[at]);
}
