/** The servers that a broker names in its Server Reference (MQTT 5 section 4.11), and which of them the kit may go to. */
import { isIP } from 'node:net';
import { brokerPlace } from '../platform/broker-address.ts';
import { profileOf } from '../platform/broker-profiles.ts';
import { isThisMachine } from '../platform/networks.ts';

/** Beyond these, a list is no list of servers. */
const servers_max = 16;

/**
 * Addresses of the form that `url` has: the same scheme and path, so that nothing is sent with less protection, and its port where
 * none is named. The reference is a list of `host` or `host:port`, separated by spaces; some brokers write an address with a scheme.
 */
export function serversIn(reference: string, url: string): readonly string[] {
  const from = new URL(url);
  return reference
    .split(/\s+/u)
    .slice(0, servers_max)
    .flatMap((named) => {
      const address = named.includes('://') ? named : `${from.protocol}//${named}`;
      const to = URL.canParse(address) ? new URL(address) : undefined;
      const isSame = to?.protocol === from.protocol && to.hostname !== '' && to.username === '';
      if (!isSame) return [];
      const path = from.pathname === '/' ? '' : from.pathname;
      return [`${from.protocol}//${to.hostname}:${to.port || brokerPlace(from).port}${path}${from.search}`];
    });
}

/** Second-level names below country codes that belong to nobody alone: `co.uk`, `com.au`, `or.jp`. Short names of firms count among them, to be safe. */
const shared_label_chars_max = 3;

/**
 * The domain whose names belong to the operator of this broker: that of its host without the first label. Names of clouds stand
 * beside those of their other customers, so only their own host counts.
 */
function domainOf(host: string): string {
  if (isThisMachine(host)) return 'localhost';
  const [, ...parent] = host.split('.');
  const [label = '', top = ''] = parent;
  const isShared =
    parent.length < 2 ||
    (parent.length === 2 && top.length === 2 && label.length <= shared_label_chars_max) ||
    profileOf(host) !== undefined;
  return isIP(host) !== 0 || isShared ? host : parent.join('.');
}

/** Whether the host is one of the configured brokers, of the domain of one, or one that the configuration names. */
export function isWithin(
  url: string,
  brokers: readonly { readonly url: string }[],
  redirect_to: readonly string[],
): boolean {
  const { host } = brokerPlace(new URL(url));
  const name = isThisMachine(host) ? 'localhost' : host;
  const domains = brokers.map((broker) => domainOf(brokerPlace(new URL(broker.url)).host));
  return [...domains, ...redirect_to].some((domain) => name === domain || name.endsWith(`.${domain}`));
}
