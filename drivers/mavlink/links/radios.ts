/** Reports of telemetry radios: which is the newest of a link, and which are the second message of an old radio. */
import type { Link } from './link.ts';
import type { Decoded, Messages } from '../wire/messages.ts';

type RadioReport = Messages['RADIO_STATUS'];

/** Old radios send each report in two messages. */
const twice_ms = 5_000;
const fresh_ms = 10_000;
const places_max = 256;

export class Radios {
  readonly #newest = new Map<Link, { readonly report: RadioReport; readonly at_ms: number }>();
  /** When RADIO_STATUS came last, by link and address. */
  readonly #usual_ms = new Map<string, number>();

  /** Returns the latest recent report of the link's radio. */
  newestOf(link: Link, now_ms: number): RadioReport | undefined {
    const newest = this.#newest.get(link);
    return newest && now_ms - newest.at_ms < fresh_ms ? newest.report : undefined;
  }

  note(link: Link, report: RadioReport, now_ms: number): void {
    this.#newest.set(link, { report, at_ms: now_ms });
  }

  /** Whether the radio at `place` has reported the same in the usual message. */
  isSecond(name: Decoded['name'], place: string, now_ms: number): boolean {
    if (name !== 'RADIO_STATUS')
      return now_ms - (this.#usual_ms.get(place) ?? Number.NEGATIVE_INFINITY) < twice_ms;
    if (this.#usual_ms.size >= places_max && !this.#usual_ms.has(place)) this.#usual_ms.clear();
    this.#usual_ms.set(place, now_ms);
    return false;
  }
}
