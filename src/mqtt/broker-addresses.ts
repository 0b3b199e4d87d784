/**
 * Finds the addresses of a broker's name without waiting for a name server that does not answer: after a failover the one in
 * use may stand behind the dead link, and the operating system waits for it for seconds before it asks the next.
 */
import { type LookupAddress, type LookupOptions, promises } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { hasCode } from '../platform/errors.ts';
import { sleep } from '../platform/time.ts';

/** A name server answers within one round trip, also by satellite in most cases. */
const patience_ms = 300;
/** Of one query to one name server, and its repetitions. */
const query_ms = 2_000;
const query_tries = 2;
/** Name servers that are asked at once, and brokers whose addresses are remembered. */
const servers_max = 4;
const hosts_max = 16;
/** Addresses whose failure is remembered. */
const failed_max = 64;

type Addresses = readonly LookupAddress[];

export interface NameSources {
  /** What the operating system answers, in the order that it prefers. */
  readonly system: (host: string) => Promise<Addresses>;
  /** The first answer of any of the name servers, which are all asked at once. */
  readonly servers: (host: string) => Promise<Addresses>;
}

/** Remembers the last answer for each name, and which address was connected. */
export class BrokerAddresses {
  readonly #sources: NameSources;
  readonly #known = new Map<string, Addresses>();
  readonly #connected = new Map<string, string>();
  /** Addresses of names, the one that failed last at the end. */
  readonly #failed = new Set<string>();
  /** One query to the operating system for each name: each keeps a thread until it ends. */
  readonly #asked = new Map<string, Promise<Addresses>>();

  constructor(sources: NameSources) {
    this.#sources = sources;
  }

  /** As `dns.lookup`, for sockets. */
  readonly lookup: LookupFunction = (host, options, callback) => {
    void this.#answer(host, options, callback);
  };

  async #answer(
    host: string,
    { all, family }: LookupOptions,
    callback: Parameters<LookupFunction>[2],
  ): Promise<void> {
    const wanted = String(family ?? 0).replace('IPv', '');
    let found: Addresses;
    try {
      const every_family = answered(host, await this.find(host));
      found = every_family.filter((each) => wanted === '0' || wanted === String(each.family));
    } catch (error) {
      callback(error instanceof Error ? error : new Error(String(error)), '');
      return;
    }
    const [first] = found;
    if (first === undefined) callback(notFound(host), '');
    else if (all === true) callback(null, [...found]);
    else callback(null, first.address, first.family);
  }

  /** The answer of the operating system; where it takes longer, the last one, else that of any name server. */
  async find(host: string): Promise<Addresses> {
    const known = this.#known.get(host);
    const system = this.#ask(host);
    const over = new AbortController();
    try {
      const quick = await Promise.race([system, sleep(patience_ms, over.signal)]);
      if (quick) return this.#inOrder(host, quick);
    } catch (error) {
      // That a name does not exist is an answer.
      if (hasCode(error, 'ENOTFOUND')) throw error;
    } finally {
      over.abort();
    }
    if (known) return this.#inOrder(host, known);
    const servers = this.#sources.servers(host).then((found) => this.#learn(host, found));
    return Promise.any([system, servers]).catch(async () => system);
  }

  /** A connection to this address was made: it is tried first the next time. */
  connected(host: string, address: string | undefined): void {
    if (address === undefined) return;
    this.#connected.set(host, address);
    this.#failed.delete(`${host} ${address}`);
    if (this.#connected.size > hosts_max) this.#connected.delete(firstOf(this.#connected));
  }

  /**
   * A connection to this address was made, and no broker answered on it: the others of the name are tried before it. A hung
   * node of a cluster, or a balancer without one, takes connections all the same (mqttjs/MQTT.js#982, eclipse/paho.mqtt.c#410).
   */
  failed(host: string, address: string | undefined): void {
    if (address === undefined) return;
    this.#failed.delete(`${host} ${address}`);
    this.#failed.add(`${host} ${address}`);
    const [oldest] = this.#failed.size > failed_max ? this.#failed : [];
    if (oldest !== undefined) this.#failed.delete(oldest);
  }

  /** The address that is tried first, without asking; undefined: not known yet. */
  known(host: string): string | undefined {
    if (isIP(host) !== 0) return host;
    const [first] = this.#inOrder(host, this.#known.get(host) ?? []);
    return first?.address;
  }

  #ask(host: string): Promise<Addresses> {
    const open = this.#asked.get(host);
    if (open) return open;
    const asked = this.#sources
      .system(host)
      .then((found) => this.#learn(host, found))
      .finally(() => this.#asked.delete(host));
    asked.catch(() => undefined);
    this.#asked.set(host, asked);
    return asked;
  }

  #learn(host: string, found: Addresses): Addresses {
    this.#known.delete(host);
    this.#known.set(host, found);
    if (this.#known.size > hosts_max) this.#known.delete(firstOf(this.#known));
    return found;
  }

  #inOrder(host: string, found: Addresses): Addresses {
    const last = this.#connected.get(host);
    const failed = [...this.#failed];
    const rank = ({ address }: LookupAddress): number => {
      const failure = failed.indexOf(`${host} ${address}`);
      return failure < 0 && address !== last ? -0.5 : failure;
    };
    return found.toSorted((a, b) => rank(a) - rank(b));
  }
}

function notFound(host: string): Error {
  return Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { code: 'ENOTFOUND' });
}

/**
 * Filters of names answer with the address of nobody (docs.pi-hole.net/ftldns/blockingmode): connections to it reach this machine, and
 * perhaps a broker of its own. Throws where that is all there is.
 */
export function answered(host: string, found: Addresses): Addresses {
  const others = found.filter(({ address }) => address !== '0.0.0.0' && address !== '::');
  if (others.length === 0 && found.length > 0)
    throw Object.assign(new Error(`${host} is blocked`), { code: 'NAME_BLOCKED' });
  return others;
}

function firstOf(map: ReadonlyMap<string, unknown>): string {
  return map.keys().next().value ?? '';
}

/** Asks all these name servers at once; rejects when none has an address. Late answers are ignored. */
export async function askServers(host: string, servers: readonly string[]): Promise<Addresses> {
  const resolvers = servers.slice(0, servers_max).map((server) => {
    const resolver = new promises.Resolver({ timeout: query_ms, tries: query_tries });
    resolver.setServers([server]);
    return resolver;
  });
  try {
    return await Promise.any(resolvers.map(async (resolver) => askServer(host, resolver)));
  } finally {
    for (const resolver of resolvers) resolver.cancel();
  }
}

async function askServer(host: string, resolver: promises.Resolver): Promise<Addresses> {
  const [v4, v6] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
  const found = [
    ...(v4.status === 'fulfilled' ? v4.value.map((address) => ({ address, family: 4 })) : []),
    ...(v6.status === 'fulfilled' ? v6.value.map((address) => ({ address, family: 6 })) : []),
  ];
  if (found.length === 0) throw new Error('no address');
  return found;
}

/** Those of the daemon. */
export const broker_addresses = new BrokerAddresses({
  system: async (host) => promises.lookup(host, { all: true }),
  servers: async (host) => askServers(host, new promises.Resolver().getServers()),
});
