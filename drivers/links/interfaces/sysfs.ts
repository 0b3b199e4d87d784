/** Reads network interfaces from sysfs: their properties once, their state each time. */
import { join } from 'node:path';
import type { DriverLog } from '../../../src/toolkit/driver/driver.ts';
import {
  existsSync,
  linkNameSync,
  readNamesSync,
  readNumberSync,
  readTextSync,
} from '../../../src/toolkit/device/system-files.ts';
import { texts } from '../texts.ts';

/** What does not change while the interface exists. */
export interface Nature {
  readonly name: string;
  readonly ifindex: number;
  /** ARPHRD number (linux/if_arp.h). */
  readonly kind: number | undefined;
  /** `wlan`, `wwan`, `bridge`, `vlan`, ...; plain Ethernet has none. */
  readonly devtype: string | undefined;
  /** Kernel driver of the hardware. */
  readonly driver: string | undefined;
  readonly isHardware: boolean;
  readonly isWireless: boolean;
  /** Made by a program, without Ethernet: TUN. */
  readonly isTun: boolean;
}

export interface InterfaceState {
  /** Belongs to a bridge or bond, which represents it. A VRF is a separate routing table and represents none. */
  readonly hasMaster: boolean;
  /** Interfaces that it stands on, as a VLAN on its port. */
  readonly lowers: readonly string[];
  readonly isUp: boolean | undefined;
  /** Undefined: the kernel does not say, as of an interface that is down. */
  readonly carrier: boolean | undefined;
  readonly operstate: string | undefined;
  /** Since `ifindex` came to be. */
  readonly rx_bytes: number | undefined;
  readonly tx_bytes: number | undefined;
  readonly mtu: number | undefined;
  /** Negotiated; undefined for what has none. */
  readonly speed_bps: number | undefined;
}

const iff_up = 0x1;
const iff_noarp = 0x80;
const iff_master = 0x400;

/** Remembers the natures, so that a machine with many container interfaces costs one small file each. */
export class Interfaces {
  readonly #dir: string;
  readonly #log: DriverLog;
  #known: ReadonlyMap<string, Nature> = new Map();
  #hasLogged = false;

  constructor(sys: string, log: DriverLog) {
    this.#dir = join(sys, 'class/net');
    this.#log = log;
  }

  /** All interfaces of the machine by name; undefined when the kernel does not list them. */
  natures(): ReadonlyMap<string, Nature> | undefined {
    const names = readNamesSync(this.#dir);
    if (!names) return undefined;
    this.#logUnreadable(names);
    const natures = names.flatMap((name) => {
      const dir = join(this.#dir, name);
      const ifindex = readNumberSync(join(dir, 'ifindex'));
      // Gone between the two readings, or no interface at all (`bonding_masters`).
      if (ifindex === undefined) return [];
      const known = this.#known.get(name);
      return [known?.ifindex === ifindex ? known : readNature(dir, name, ifindex)];
    });
    this.#known = new Map(natures.map((nature) => [nature.name, nature]));
    return this.#known;
  }

  /** The kernel accepts any bytes in a name; invalid UTF-8 is read as replacement characters, which name no file. */
  #logUnreadable(names: readonly string[]): void {
    const unreadable = names.filter((name) => name.includes('\uFFFD') && !existsSync(join(this.#dir, name)));
    if (unreadable.length > 0 && !this.#hasLogged) {
      const facts = { interfaces: unreadable, remedy: texts.rename_interface };
      this.#log.warn(facts, texts.name_not_utf8);
    }
    this.#hasLogged = unreadable.length > 0;
  }

  state(name: string): InterfaceState {
    const dir = join(this.#dir, name);
    const flags = readNumberSync(join(dir, 'flags'));
    const carrier = readNumberSync(join(dir, 'carrier'));
    const speed_mbps = readNumberSync(join(dir, 'speed'));
    const lower = 'lower_';
    return {
      hasMaster: existsSync(join(dir, 'master')) && !isVrf(join(dir, 'master')),
      lowers: (readNamesSync(dir) ?? [])
        .filter((entry) => entry.startsWith(lower))
        .map((entry) => entry.slice(lower.length)),
      isUp: flags === undefined ? undefined : (flags & iff_up) !== 0,
      carrier: carrier === undefined ? undefined : carrier === 1,
      operstate: readTextSync(join(dir, 'operstate')),
      rx_bytes: readNumberSync(join(dir, 'statistics/rx_bytes')),
      tx_bytes: readNumberSync(join(dir, 'statistics/tx_bytes')),
      mtu: readNumberSync(join(dir, 'mtu')),
      // Drivers that do not know their speed report -1, 0 or 2^32 - 1.
      speed_bps: speed_mbps && speed_mbps < 0xff_ff_ff_ff ? speed_mbps * 1e6 : undefined,
    };
  }
}

/** The kernel names no type of a VRF here, but no other master is one without ARP; a bond may be. */
function isVrf(dir: string): boolean {
  const flags = readNumberSync(join(dir, 'flags')) ?? 0;
  return (flags & iff_master) !== 0 && (flags & iff_noarp) !== 0 && !existsSync(join(dir, 'bonding'));
}

function readNature(dir: string, name: string, ifindex: number): Nature {
  const devtype = /^DEVTYPE=(.+)$/mu.exec(readTextSync(join(dir, 'uevent')) ?? '')?.[1];
  return {
    name,
    ifindex,
    kind: readNumberSync(join(dir, 'type')),
    devtype,
    driver: linkNameSync(join(dir, 'device/driver')),
    isHardware: existsSync(join(dir, 'device')),
    isWireless: devtype === 'wlan' || existsSync(join(dir, 'phy80211')) || existsSync(join(dir, 'wireless')),
    isTun: existsSync(join(dir, 'tun_flags')) && readNumberSync(join(dir, 'type')) === arphrd.none,
  };
}

/** ARPHRD numbers of links that matter here. */
export const arphrd = {
  ethernet: 1,
  ppp: 512,
  raw_ip: 519,
  loopback: 772,
  none: 65_534,
} as const;
