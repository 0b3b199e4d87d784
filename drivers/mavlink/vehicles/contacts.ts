/** The received autopilots, indexed by link and peer so that a look-up builds no key. */
import type { Contact } from './contact.ts';
import type { Link } from '../links/link.ts';
import { type Newcomer, Slots } from './newcomers.ts';

interface Sender {
  readonly sysid: number;
  readonly compid: number;
}

export class Contacts {
  readonly #all = new Set<Contact>();
  readonly #by_link = new Map<Link, Map<string, Contact[]>>();
  readonly #slots = new Slots();

  get all(): ReadonlySet<Contact> {
    return this.#all;
  }

  /** Returns all autopilots that send from one address. */
  at(link: Link, peer: string): readonly Contact[] {
    return this.#by_link.get(link)?.get(peer) ?? none;
  }

  find(link: Link, peer: string, { sysid, compid }: Sender): Contact | undefined {
    for (const contact of this.at(link, peer)) {
      if (contact.sysid === sysid && contact.compid === compid) return contact;
    }
    return undefined;
  }

  /** Whether one more autopilot can be added, and which one must be dropped for it. */
  slotFor(from: Newcomer): ReturnType<Slots['slotFor']> {
    return this.#slots.slotFor(from, this.#all);
  }

  add(contact: Contact): void {
    const { link, peer } = contact;
    this.#all.add(contact);
    const by_peer = this.#by_link.get(link) ?? new Map<string, Contact[]>();
    this.#by_link.set(link, by_peer);
    by_peer.set(peer, [...this.at(link, peer), contact]);
  }

  delete(contact: Contact): void {
    const { link, peer } = contact;
    if (!this.#all.delete(contact)) return;
    const left = this.at(link, peer).filter((each) => each !== contact);
    if (left.length > 0) this.#by_link.get(link)?.set(peer, left);
    else this.#by_link.get(link)?.delete(peer);
  }
}

const none: readonly Contact[] = [];

// Where an autopilot is received, for the forwarding of frames.

export interface Route {
  readonly sysid: number;
  readonly compid: number;
  readonly link: Link;
  readonly peer: string;
  /** Of its vehicle; undefined before it is identified. */
  readonly asset_key: string | undefined;
  /** Whether commands take this route: a vehicle may be received over several. */
  readonly isActive: boolean;
  /** Whether another vehicle elsewhere uses its system id, and the configuration does not name where this one is received. */
  readonly isNamesake: boolean;
}

export function routeOf(contact: Contact): Route {
  const { sysid, compid, link, peer, vehicle } = contact;
  const isActive = !vehicle || vehicle.active === contact;
  const isNamesake = vehicle?.namesake !== undefined && !vehicle.hasHosts && !contact.isNamed;
  return { sysid, compid, link, peer, asset_key: vehicle?.asset_key, isActive, isNamesake };
}
