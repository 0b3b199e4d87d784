/** Asks rarely for the public address of each link, and remembers it for as long as it can be believed. */
import type { PublicAddress } from './api.ts';

interface PublicAddressesSpec {
  readonly ask: PublicAddress;
  readonly servers: readonly { readonly ip: string; readonly port: number }[];
  readonly refresh_ms: number;
  readonly signal: AbortSignal;
  /** An answer has come. */
  readonly onChange: () => void;
}

export interface Addressed {
  readonly name: string;
  readonly ifindex: number;
  /** The interface's own: the public address is asked for again when they change. */
  readonly addresses: readonly string[];
}

interface Known {
  /** Interface and addresses that the answer belongs to. */
  readonly key: string;
  readonly ip: string | null;
  readonly next_mono_ms: number;
  readonly isAsking: boolean;
  readonly failures: number;
}

/** Pause after a question without an answer; doubles with each, up to the refresh. */
const retry_first_ms = 30_000;

export class PublicAddresses {
  readonly #spec: PublicAddressesSpec;
  readonly #known = new Map<string, Known>();

  constructor(spec: PublicAddressesSpec) {
    this.#spec = spec;
  }

  /** What servers saw of the link, or null. Asks in the background when it is due; `mono_ms` never steps. */
  of(link: Addressed, mono_ms: number): string | null {
    if (this.#spec.servers.length === 0) return null;
    const key = JSON.stringify([link.ifindex, ...[...link.addresses].sort()]);
    const known = this.#known.get(link.name);
    const isCurrent = known?.key === key;
    if (!isCurrent || (!known.isAsking && mono_ms >= known.next_mono_ms)) {
      const kept = isCurrent ? known : { key, ip: null, next_mono_ms: 0, failures: 0 };
      this.#known.set(link.name, { ...kept, isAsking: true });
      void this.#ask(link.name, key);
    }
    return isCurrent ? known.ip : null;
  }

  /** Forgets all links but these. */
  keepOnly(listed: ReadonlySet<string>): void {
    for (const name of this.#known.keys()) if (!listed.has(name)) this.#known.delete(name);
  }

  async #ask(device: string, key: string): Promise<void> {
    const { ask, servers, signal, refresh_ms, onChange } = this.#spec;
    const ip = await ask({ device, servers, signal }).catch(() => null);
    const known = this.#known.get(device);
    // The link has another address by now: the answer is about the old one.
    if (signal.aborted || known?.key !== key) return;
    const failures = ip === null ? known.failures + 1 : 0;
    const pause_ms = ip === null ? Math.min(refresh_ms, retry_first_ms * 2 ** (failures - 1)) : refresh_ms;
    const next_mono_ms = performance.now() + pause_ms;
    this.#known.set(device, { key, ip, next_mono_ms, isAsking: false, failures });
    onChange();
  }
}
