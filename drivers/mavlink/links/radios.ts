/** Reports of telemetry radios: which is the newest of a link, and which are the second message of an old radio. */
import { SeenRecently } from '../../../src/platform/seen-recently.ts';
import type { Link } from './link.ts';
import type { Decoded, Messages } from '../wire/messages.ts';

type RadioReport = Messages['RADIO_STATUS'];
type RadioMessage = Extract<Decoded, { readonly name: 'RADIO' | 'RADIO_STATUS' }>;

interface RadioSource<C> {
  readonly link: Link;
  readonly peer: string;
  readonly contact: C | undefined;
  readonly now_ms: number;
}

/** A vehicle, and the contact by which it is served. */
interface Served<C> {
  readonly active: C & { readonly link: Link; readonly peer: string };
  readonly receiveRadio: (report: RadioReport) => void;
}

/** Old radios send each report in two messages. */
const twice_ms = 5_000;
const fresh_ms = 10_000;
const places_max = 256;

export class Radios {
  readonly #newest = new Map<Link, { readonly report: RadioReport; readonly at_ms: number }>();
  /** From where RADIO_STATUS came, by link and address. */
  readonly #usual = new SeenRecently<string>({ keep_ms: twice_ms, max: places_max });

  /** Returns the latest recent report of the link's radio. */
  newestOf(link: Link, now_ms: number): RadioReport | undefined {
    const newest = this.#newest.get(link);
    return newest && now_ms - newest.at_ms < fresh_ms ? newest.report : undefined;
  }

  /** Gives a report to all vehicles behind the radio, which has its own ids unless `contact` is set: then it is of that one. */
  receive<C>(
    { name, fields }: RadioMessage,
    { link, peer, contact, now_ms }: RadioSource<C>,
    vehicles: readonly Served<C>[],
  ): void {
    this.#newest.set(link, { report: fields, at_ms: now_ms });
    const behind = vehicles.filter(({ active }) =>
      contact ? active === contact : active.link === link && active.peer === peer,
    );
    if (behind.length === 0 || this.#isSecond(name, `${link.name}|${peer}`, now_ms)) return;
    for (const vehicle of behind) vehicle.receiveRadio(fields);
  }

  /** Whether the radio at `place` has reported the same in the usual message. */
  #isSecond(name: Decoded['name'], place: string, now_ms: number): boolean {
    if (name !== 'RADIO_STATUS') return this.#usual.has(place, now_ms);
    this.#usual.note(place, true, now_ms);
    return false;
  }
}
