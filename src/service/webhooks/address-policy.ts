/** Which addresses deliveries may go to: the service stands in networks that its clients must not reach through it (SSRF). */
import { BlockList, isIP } from 'node:net';

const url_chars_max = 2_048;

/** Special-purpose networks of IPv4 (RFC 6890 and its registry), multicast and reserved ones. */
const never_v4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
] as const;
/** Of IPv6 only global unicast is reached, and of that no tunnels, which hold addresses of IPv4, and no documentation. */
const only_v6 = '2000::/3';
const never_v6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'] as const;

export interface AddressRules {
  /** Networks that are reached although they are private, such as `10.20.0.0/16`. */
  readonly allow: readonly string[];
  /** Without TLS, too. */
  readonly allow_http: boolean;
}

export class AddressPolicy {
  readonly #allowed: BlockList;
  readonly #never = listOf([...never_v4, ...never_v6]);
  readonly #global = listOf([only_v6]);
  readonly #allow_http: boolean;

  constructor({ allow, allow_http }: AddressRules) {
    this.#allowed = listOf(allow);
    this.#allow_http = allow_http;
  }

  /** Returns what is wrong with the address of a receiver; undefined: nothing. Names are resolved at each delivery only. */
  faultOf(text: string): string | undefined {
    if (text.length > url_chars_max || !URL.canParse(text))
      return 'must be an address such as https://app.example.com/hook';
    const { protocol, username, password, hash, hostname } = new URL(text);
    if (protocol !== 'https:' && !(protocol === 'http:' && this.#allow_http))
      return 'must begin with https://';
    if (username !== '' || password !== '') return 'must hold no user name and no password';
    if (hash !== '') return 'must hold no fragment';
    const address = hostname.replace(/^\[|\]$/gu, '');
    return isIP(address) === 0 || this.reaches(address)
      ? undefined
      : `${address} is in a private network; the configuration names the allowed networks (webhooks.allow)`;
  }

  /** Whether deliveries may go to this IP address; to another text never. */
  reaches(address: string): boolean {
    const version = isIP(address);
    if (version === 0) return false;
    const family = version === 6 ? 'ipv6' : 'ipv4';
    if (this.#allowed.check(address, family)) return true;
    if (this.#never.check(address, family)) return false;
    return family === 'ipv4' || this.#global.check(address, family);
  }
}

function listOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits = ''] = network.split('/');
    list.addSubnet(address, Number(bits), isIP(address) === 6 ? 'ipv6' : 'ipv4');
  }
  return list;
}
