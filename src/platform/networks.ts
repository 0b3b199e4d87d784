/** IP addresses as sockets write them, and whether they are in given networks. */
import { BlockList, isIP } from 'node:net';

/** The address without the prefix that an IPv4 address has in a socket of IPv6. */
export function plainIp(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/iu, '');
}

/** Whether the host is certainly this machine. A name such as `127.0.0.1.example.com` can be any machine. */
export function isThisMachine(host: string): boolean {
  const ip = host.replace(/^\[(.*)\]$/u, '$1');
  return host === 'localhost' || ip === '::1' || (isIP(ip) === 4 && ip.startsWith('127.'));
}

/** A list of networks such as `10.20.0.0/16`. */
export function listOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits = ''] = network.split('/');
    list.addSubnet(address, Number(bits), familyOf(address));
  }
  return list;
}

/** Networks of both families. One list for each: a list of both takes every IPv4 address for one of `::ffff:0:0/96`. */
export class Networks {
  readonly #lists: Readonly<Record<'ipv4' | 'ipv6', BlockList>>;

  constructor(networks: readonly string[]) {
    const isV6 = (network: string): boolean => network.includes(':');
    this.#lists = {
      ipv4: listOf(networks.filter((each) => !isV6(each))),
      ipv6: listOf(networks.filter(isV6)),
    };
  }

  /** Whether the address is in one of them; another text never is. */
  has(address: string): boolean {
    if (isIP(address) === 0) return false;
    const family = familyOf(address);
    return this.#lists[family].check(address, family);
  }
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}
