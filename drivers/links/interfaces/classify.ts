/** Classifies an interface by its properties: never a WAN, a modem, a tunnel, and the type of link. Pure. */
import type { LinkType } from '../../../src/contract/kit.ts';
import { arphrd, type Nature } from './sysfs.ts';

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

/** IPIP, IP6 in IP6, SIT, GRE, GRE over IPv6. */
const tunnel_kinds: ReadonlySet<number> = new Set([768, 769, 776, 778, 823]);
const tunnel_devtypes: ReadonlySet<string> = new Set(['wireguard', 'vxlan', 'geneve', 'macsec']);

/** The names that modems and telephones get; the last resort. */
const cellular_name = /^(?:wwan|rmnet|mhi_hwip|ppp|usb\d)/u;
const wifi_name = /^wl(?:an|[a-z]\d|x)/u;

/** It carries traffic inside the traffic of another interface. */
export function isTunnel({ kind, devtype, isTun }: Nature): boolean {
  return isTun || tunnel_kinds.has(kind ?? 0) || tunnel_devtypes.has(devtype ?? '');
}

/** A modem is a WAN also while it has no route, since it is never anything else. */
export function isModem({ kind, devtype, driver, isHardware }: Nature): boolean {
  return isHardware && (devtype === 'wwan' || kind === arphrd.raw_ip || modem_drivers.has(driver ?? ''));
}

export function isLoopback({ kind }: Nature): boolean {
  return kind === arphrd.loopback;
}

/** The kernel's word first, the name last. `pppoe`: PPP interfaces that run over Ethernet, not over a modem. */
export function typeOf(nature: Nature, pppoe: ReadonlySet<string>): LinkType {
  if (nature.isWireless) return 'wifi';
  if (nature.kind === arphrd.ppp && pppoe.has(nature.name)) return 'ethernet';
  if (isModem(nature) || nature.kind === arphrd.ppp || nature.kind === arphrd.raw_ip) return 'cellular';
  return typeByName(nature.name);
}

/** For an interface that is not there. */
export function typeByName(name: string): LinkType {
  if (cellular_name.test(name)) return 'cellular';
  return wifi_name.test(name) ? 'wifi' : 'ethernet';
}
