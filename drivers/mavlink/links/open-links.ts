/** Links over which a stranger can pass for a vehicle: they accept unsigned frames from any sender. */
import { Networks, plainIp } from '../../../src/platform/networks.ts';
import type { MavlinkOptions } from '../options.ts';
import { addressOf } from './link.ts';
import type { LinkOptions } from './link-options.ts';

export interface OpenLink {
  readonly name: string;
  /** Own address and port that it receives at. */
  readonly place: string;
}

/** The links that receive from any host of a network, unless frames are signed or all configured vehicles have their hosts. */
export function openLinks({
  links,
  signing,
  vehicles,
}: Pick<MavlinkOptions, 'links' | 'signing' | 'vehicles'>): readonly OpenLink[] {
  const named = Object.values(vehicles);
  const have_hosts = named.length > 0 && named.every(({ hosts }) => hosts !== undefined);
  if (signing || have_hosts) return [];
  return links.flatMap((link) => {
    const place = placeOf(link);
    return place === undefined ? [] : [{ name: link.name ?? addressOf(link), place }];
  });
}

const loopback = new Networks(['127.0.0.0/8', '::1/128']);

/** Undefined: its peers are those of the configuration, or of this machine. */
function placeOf(link: LinkOptions): string | undefined {
  // It sends to one host, and receives from all.
  if (link.kind === 'udp_client') return `UDP port ${link.local_port}`;
  if (link.kind !== 'udp_listen' && link.kind !== 'tcp_listen') return undefined;
  const { host, port, kind } = link;
  if (host === 'localhost' || loopback.has(plainIp(host))) return undefined;
  const named = `${kind === 'udp_listen' ? 'UDP' : 'TCP'} port ${port}`;
  return host === '0.0.0.0' || host === '::' ? named : `${named} of ${host}`;
}
