/** Looks up the name of a device. A login does not follow a name from a private network out to the internet. */
import { lookup as resolve, type LookupAddress, type LookupOptions } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { z } from 'zod';
import { DeviceUnreachable } from '../../platform/errors.ts';
import { plainIp } from '../../platform/networks.ts';
import { isPublicIp } from '../../platform/public-ip.ts';
import { texts } from './texts.ts';
import type { MemoryOf } from './device-memory.ts';

/** Properties of the memory of a device; a damaged one counts as missing. */
export const nameRecord = {
  /** Names that led to the device at an address of a private network. */
  private_names: z.array(z.string().max(253)).optional().catch(undefined),
} as const;
const record = z.object(nameRecord);
type NameRecord = z.output<typeof record>;

/** As `dns.lookup` with the option `all`. */
type Resolve = (
  name: string,
  options: LookupOptions & { readonly all: true },
  done: (error: NodeJS.ErrnoException | null, found: LookupAddress[]) => void,
) => void;

export interface DeviceNameParts {
  /** As configured: a name or an address. */
  readonly host: string;
  readonly memory: MemoryOf<NameRecord>;
  /** Left out, the resolver of the operating system. */
  readonly resolve?: Resolve;
}

/** The host of one device. What is no name is never looked up. */
export class DeviceName {
  readonly #host: string;
  readonly #memory: DeviceNameParts['memory'];
  readonly #resolve: Resolve;
  #reached: string | undefined;
  #accepted: string | undefined;

  constructor({ host, memory, resolve: own = resolve }: DeviceNameParts) {
    this.#host = host;
    this.#memory = memory;
    this.#resolve = own;
  }

  /** Where the device was last accepted; before that, and for an address, the host as configured. */
  get address(): string {
    return this.#accepted ?? this.#host;
  }

  /** Something at the name answered from this address. */
  reached(address: string | undefined): void {
    this.#reached = address === undefined ? this.#reached : plainIp(address);
  }

  /** What answered last is the device: it accepted the login and is the one of its entry. */
  async accept(): Promise<void> {
    if (this.#reached === undefined || isIP(this.#host) !== 0) return;
    this.#accepted = this.#reached;
    if (isOutside(this.#accepted) || this.#isPrivate) return;
    await this.#memory.change({ private_names: [this.#host] });
  }

  /** As `dns.lookup`, for sockets. */
  readonly lookup: LookupFunction = (name, options, done) => {
    this.#resolve(name, { ...options, all: true }, (error, found) => {
      if (error) {
        done(error, []);
        return;
      }
      const allowed = this.#isPrivate ? found.filter(({ address }) => !isOutside(address)) : found;
      const [first] = allowed;
      if (!first) done(new DeviceUnreachable(texts.name_leads_out(name, found[0]?.address ?? '')), []);
      else if (options.all === true) done(null, allowed);
      else done(null, first.address, first.family);
    });
  };

  get #isPrivate(): boolean {
    return this.#memory.facts.private_names?.includes(this.#host) === true;
  }
}

/** The zone of a link-local address is none of it. */
function isOutside(address: string): boolean {
  return isPublicIp(address.replace(/%.*$/u, ''));
}
