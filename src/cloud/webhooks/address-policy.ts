/** Which addresses deliveries may go to: the service stands in networks that its clients must not reach through it (SSRF). */
import { type BlockList, isIP } from 'node:net';
import { listOf } from '../../platform/networks.ts';
import { isExampleIp, isPublicIp } from '../../platform/public-ip.ts';

const url_chars_max = 2_048;

export interface AddressRules {
  /** Networks that are reached although they are private, such as `10.20.0.0/16`. */
  readonly allow: readonly string[];
  /** Without TLS, too. */
  readonly allow_http: boolean;
}

export class AddressPolicy {
  readonly #allowed: BlockList;
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
    return isPublicIp(address) && !isExampleIp(address);
  }
}
