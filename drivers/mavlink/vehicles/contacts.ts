/** The received autopilots, indexed by link and peer so that a look-up builds no key. */
import type { Contact } from './contact.ts';
import type { Link } from '../links/link.ts';
import { type Newcomer, type Roles, Slots, sourceOf } from './newcomers.ts';

interface Sender {
  readonly sysid: number;
  readonly compid: number;
}

export class Contacts {
  readonly #all = new Set<Contact>();
  readonly #by_link = new Map<Link, Map<string, Contact[]>>();
  /** Counted, since each new sender of a flood asks. */
  readonly #of_source = new Map<Link, Map<string, number>>();
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
  slotFor(from: Newcomer, roles: Roles): ReturnType<Slots['slotFor']> {
    const source = sourceOf(from.peer);
    const of_source = this.#of_source.get(from.link)?.get(source) ?? 0;
    return this.#slots.slotFor({ ...from, source, of_source }, this.#all, roles);
  }

  add(contact: Contact): void {
    const { link, peer } = contact;
    this.#all.add(contact);
    const by_peer = this.#by_link.get(link) ?? new Map<string, Contact[]>();
    this.#by_link.set(link, by_peer);
    by_peer.set(peer, [...this.at(link, peer), contact]);
    this.#count(contact, 1);
  }

  delete(contact: Contact): void {
    const { link, peer } = contact;
    if (!this.#all.delete(contact)) return;
    this.#count(contact, -1);
    const left = this.at(link, peer).filter((each) => each !== contact);
    if (left.length > 0) this.#by_link.get(link)?.set(peer, left);
    else this.#by_link.get(link)?.delete(peer);
  }

  #count({ link, source }: Contact, change: 1 | -1): void {
    const counts = this.#of_source.get(link) ?? new Map<string, number>();
    this.#of_source.set(link, counts);
    const count = (counts.get(source) ?? 0) + change;
    if (count > 0) counts.set(source, count);
    else counts.delete(source);
  }
}

const none: readonly Contact[] = [];
