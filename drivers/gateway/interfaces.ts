/** Tells from sysfs which interfaces are WAN links, of which type they are, and whether they carry a signal. */
import { join } from 'node:path';
import type { LinkType } from '../../src/contract/kit.ts';
import { wans_max } from '../../src/contract/kit.ts';
import { exists, linkName, readNames, readNumber, readText } from './files.ts';
import type { GatewayOptions } from './options.ts';

/** ARPHRD numbers (linux/if_arp.h) of links that can be a WAN: Ethernet, PPP, raw IP, and none, as modems use it. */
const arphrd = { ethernet: 1, ppp: 512, raw_ip: 519, none: 65_534 } as const;
const wan_kinds: readonly number[] = Object.values(arphrd);

/** Kernel drivers of modems whose interfaces otherwise look like Ethernet. */
const modem_drivers: ReadonlySet<string> = new Set([
  'qmi_wwan',
  'cdc_mbim',
  'huawei_cdc_ncm',
  'rndis_host',
  'mhi_net',
  'mhi_wwan_mbim',
  'iosm',
  'option',
]);

export interface WanInterface {
  readonly name: string;
  readonly type: LinkType;
  /** Changes when the device was plugged in anew. */
  readonly ifindex: number | undefined;
  /** The kernel could send through it now. */
  readonly hasCarrier: boolean;
  /** Since `ifindex` came to be. */
  readonly rx_bytes: number | undefined;
  readonly tx_bytes: number | undefined;
}

/** The WAN links in order of their names, at most `wans_max`. */
export function readInterfaces(options: GatewayOptions): readonly WanInterface[] {
  const net = join(options.roots.sys, 'class/net');
  return readNames(net)
    .filter((name) => isWan(join(net, name), name, options))
    .sort()
    .slice(0, wans_max)
    .map((name) => readInterface(join(net, name), name, options));
}

/**
 * Hardware has `device`; bridges, containers, tunnels and VLANs have none. A member of a bridge or bond has `master`:
 * it belongs to the LAN or is represented by its bond.
 */
function isWan(dir: string, name: string, { interfaces }: GatewayOptions): boolean {
  if (interfaces.exclude.includes(name)) return false;
  if (interfaces.include.includes(name)) return true;
  const kind = readNumber(join(dir, 'type'));
  const isHardware = exists(join(dir, 'device')) && !exists(join(dir, 'master'));
  return isHardware && kind !== undefined && wan_kinds.includes(kind);
}

function readInterface(dir: string, name: string, { types }: GatewayOptions): WanInterface {
  const operstate = readText(join(dir, 'operstate'));
  return {
    name,
    type: (Object.hasOwn(types, name) ? types[name] : undefined) ?? typeOf(dir),
    ifindex: readNumber(join(dir, 'ifindex')),
    // Modems and PPP leave operstate at "unknown" for ever: their carrier alone tells.
    hasCarrier: readNumber(join(dir, 'carrier')) === 1 && (operstate === 'up' || operstate === 'unknown'),
    rx_bytes: readNumber(join(dir, 'statistics/rx_bytes')),
    tx_bytes: readNumber(join(dir, 'statistics/tx_bytes')),
  };
}

function typeOf(dir: string): LinkType {
  const devtype = /^DEVTYPE=(.+)$/mu.exec(readText(join(dir, 'uevent')) ?? '')?.[1];
  if (devtype === 'wlan' || exists(join(dir, 'phy80211')) || exists(join(dir, 'wireless'))) return 'wifi';
  const kind = readNumber(join(dir, 'type'));
  const isModem = devtype === 'wwan' || modem_drivers.has(linkName(join(dir, 'device/driver')) ?? '');
  return isModem || kind === arphrd.ppp || kind === arphrd.raw_ip ? 'cellular' : 'ethernet';
}
