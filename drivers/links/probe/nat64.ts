/** IPv4 addresses over a link that has IPv6 alone: translated by its network (NAT64, RFC 6146), whose prefix DNS64 shows. */
import { Resolver } from 'node:dns/promises';
import { encodeSocketAddress, ipv6Text } from '../../../src/platform/linux/socket-address.ts';

/** A name that has IPv4 addresses alone, so that an IPv6 address of it is made from them (RFC 7050). */
const ipv4_only_name = 'ipv4only.arpa';
const ipv4_only: ReadonlySet<string> = new Set(['192.0.0.170', '192.0.0.171']);
/** Of RFC 6052; networks choose others of their own. */
const well_known_prefix = '64:ff9b::';
/** The prefix has 96 bits, and the IPv4 address follows. Shorter prefixes, which are rare, are not recognised. */
const prefix_bytes = 12;
const refresh_ms = 300_000;

export class Nat64 {
  readonly #onChange: () => void;
  readonly #signal: AbortSignal;
  readonly #ask: typeof askSystem;
  #prefix: Uint8Array | null = null;
  #next_mono_ms = Number.NEGATIVE_INFINITY;

  /** `ask` returns the IPv6 addresses that the name servers of this machine have for a name with none. */
  constructor(onChange: () => void, signal: AbortSignal, ask = askSystem) {
    this.#onChange = onChange;
    this.#signal = signal;
    this.#ask = ask;
  }

  /** The address by which an IPv4 host is reached; null where no name server shows a prefix. Asks in the background when it is due. */
  translated(ip: string, mono_ms: number): string | null {
    if (mono_ms >= this.#next_mono_ms) {
      this.#next_mono_ms = mono_ms + refresh_ms;
      void this.#refresh();
    }
    if (this.#prefix === null) return null;
    return ipv6Text(Uint8Array.from([...this.#prefix, ...ip.split('.').map(Number)]));
  }

  async #refresh(): Promise<void> {
    const found = await this.#ask(this.#signal).catch(() => []);
    const address = found.map(bytesOf).find((bytes) => ipv4_only.has(bytes.subarray(prefix_bytes).join('.')));
    const before = this.#prefix;
    this.#prefix = address?.subarray(0, prefix_bytes) ?? null;
    if (!this.#signal.aborted && String(before) !== String(this.#prefix)) this.#onChange();
  }
}

/** The IPv4 address within one of the well-known prefix; every other address as it is. */
export function untranslated(address: string): string {
  if (!address.startsWith(well_known_prefix)) return address;
  const bytes = bytesOf(address);
  return bytes.subarray(4, prefix_bytes).every((byte) => byte === 0)
    ? bytes.subarray(prefix_bytes).join('.')
    : address;
}

function bytesOf(ipv6: string): Uint8Array {
  return encodeSocketAddress(ipv6, 0).subarray(8, 24);
}

/** Asks without a thread, which a silent name server would hold, also at the end. */
async function askSystem(signal: AbortSignal): Promise<readonly string[]> {
  const resolver = new Resolver({ timeout: 2_000, tries: 2 });
  signal.addEventListener('abort', () => resolver.cancel(), { once: true });
  return resolver.resolve6(ipv4_only_name);
}
