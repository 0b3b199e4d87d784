/** Addresses of proxies, and which one the environment names: the variables and exceptions of curl. */
import { BlockList, isIP } from 'node:net';
import { env as environment } from 'node:process';
import { unescape } from 'node:querystring';
import { brokerPlace, isTls } from './broker-address.ts';
import { isThisMachine } from './networks.ts';

export interface Proxy {
  readonly kind: 'http' | 'https' | 'socks5';
  readonly host: string;
  readonly port: number;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

const port_default = { http: 80, https: 443, socks5: 1080 } as const;
const kinds: Readonly<Record<string, Proxy['kind']>> = {
  'http:': 'http',
  'https:': 'https',
  'socks5:': 'socks5',
  'socks5h:': 'socks5',
};

/** Reads `http://host:port`, `https://`, `socks5://` or `socks5h://`; undefined: it is none of these. The scheme may be missing, as in many environments. */
export function readProxy(text: string): Proxy | undefined {
  const address = text.includes('://') ? text : `http://${text}`;
  if (!URL.canParse(address)) return undefined;
  const { protocol, hostname, port, username, password } = new URL(address);
  const kind = kinds[protocol];
  if (kind === undefined || hostname === '') return undefined;
  // Takes a percent sign that is not encoded as it is.
  const login = { username: unescape(username), password: unescape(password) };
  return {
    kind,
    host: hostname.replace(/^\[(.*)\]$/u, '$1'),
    port: Number(port) || port_default[kind],
    ...(username !== '' && login),
  };
}

/** `http://host:port`, without the login. */
export function nameOfProxy({ kind, host, port }: Proxy): string {
  return `${kind}://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The address of the proxy that the environment names for a broker; undefined: none. */
export function proxyOfEnvironment(url: URL, env: Environment = environment): string | undefined {
  const read = (name: string): string | undefined => env[name] || env[name.toUpperCase()] || undefined;
  const { host, port } = brokerPlace(url);
  const exceptions = (read('no_proxy') ?? '').toLowerCase().split(/[\s,]+/u);
  if (isThisMachine(host) || exceptions.some((each) => each !== '' && isCovered(host, port, each)))
    return undefined;
  return read(isTls(url) ? 'https_proxy' : 'http_proxy') ?? read('all_proxy');
}

/** By `*`, an address, a network, or a name with its subdomains, which may have a port. */
function isCovered(host: string, port: number, exception: string): boolean {
  if (exception === '*') return true;
  const [name = '', prefix] = exception.split('/');
  if (isIP(name) !== 0) return isIP(name) === isIP(host) && isWithin(host, name, prefix);
  const [domain = '', of_port = String(port)] = exception.replace(/^\*?\./u, '').split(':');
  return of_port === String(port) && (host === domain || host.endsWith(`.${domain}`));
}

function isWithin(ip: string, network: string, prefix: string | undefined): boolean {
  const [family, bits_max] = isIP(network) === 6 ? (['ipv6', 128] as const) : (['ipv4', 32] as const);
  const bits = Number(prefix ?? bits_max);
  if (!Number.isInteger(bits) || bits < 0 || bits > bits_max) return false;
  const block = new BlockList();
  block.addSubnet(network, bits, family);
  return block.check(ip, family);
}
