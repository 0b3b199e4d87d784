/**
 * Where a vehicle is received from. Without signing, anyone on a network can send as the vehicle; only the source distinguishes them.
 * Senders that the configuration names, and the source that the vehicle was first received from, are its own; others are foreign.
 */
import { plainIp } from '../../../src/platform/networks.ts';
import { silenceSince } from '../../../src/platform/stalls.ts';
import { hostOf } from './peers.ts';

/** A source is forgotten after this silence: the address of a vehicle may change with its network. */
const forget_after_ms = 600_000;

/** A contact of the vehicle. */
interface Received {
  /** The peer without its port. */
  readonly source: string;
  readonly isNamed: boolean;
  readonly isHighLatency: boolean;
  readonly last_ms: number;
}

export class KnownSource {
  /** The first source; `null`: the configuration names it, so that no other source is known. */
  #first: string | null | undefined;
  #heard_ms = Number.NEGATIVE_INFINITY;

  /** Notes a contact. One over a satellite says nothing of where the vehicle will be received when it is near. */
  add({ isNamed, isHighLatency, source }: Received): void {
    if (this.#first === undefined && !isHighLatency) this.#first = isNamed ? null : source;
  }

  isForeign({ isNamed, source }: Received): boolean {
    return !isNamed && this.#first !== undefined && source !== this.#first;
  }

  /** Makes the source of the active contact the known one after a long silence of the known source. */
  tick(contacts: Iterable<Received>, active: Received, now_ms: number): void {
    for (const contact of contacts) {
      if (!this.isForeign(contact)) this.#heard_ms = Math.max(this.#heard_ms, contact.last_ms);
    }
    if (silenceSince(this.#heard_ms, now_ms) < forget_after_ms || !this.isForeign(active)) return;
    this.#first = active.source;
    this.#heard_ms = active.last_ms;
  }
}

/** Whether a vehicle may send from there: anywhere unless its hosts are configured. */
export function isAmongHosts(hosts: readonly string[] | undefined, { isNamed, source }: Received): boolean {
  const host = plainIp(hostOf(source));
  return hosts === undefined || isNamed || hosts.includes(host);
}
