/** How long a camera may hold a pull (ONVIF Core, section 9.2): learnt from what becomes of the pulls. */
import { all, attribute, find, textAt, type XmlNode } from '../soap/xml.ts';

const short_pull_s = 5;
/** A pull that fails sooner was not cut for its length. */
export const wait_min_ms = 1_000;
/** Of the time after which a pull was cut. */
const cut_share = 0.6;
/** A shorter length is kept for this time: a single cut may have had another cause. */
const shorter_ms = 3_600_000;
/** Pulls of a camera that keeps events until the end of each. */
const late_pull_s = 2;
const late_min_ms = 1_500;
const late_max = 2;

export class PullLength {
  readonly #configured_s: number;
  #max_s: number;
  /** Replies in a row that were late with a change. */
  #late = 0;
  #shorter: { readonly seconds: number; readonly since_ms: number } | undefined;

  constructor(configured_s: number) {
    this.#configured_s = configured_s;
    this.#max_s = configured_s;
  }

  seconds(now_ms: number): number {
    if (this.#shorter && now_ms - this.#shorter.since_ms > shorter_ms) this.#shorter = undefined;
    return Math.max(1, Math.floor(Math.min(this.#shorter?.seconds ?? this.#max_s, this.#max_s)));
  }

  /** A pull of `asked_s` failed after `held_ms`: a Tapo closes idle connections after 10 s (agsh/onvif#314), routers drop them without a sign. */
  cut(asked_s: number, held_ms: number, now_ms: number): void {
    if (held_ms < wait_min_ms) return;
    const least_s = this.#shorter ? 1 : Math.min(short_pull_s, this.#configured_s);
    const seconds = Math.max(least_s, Math.min(asked_s, held_ms / 1_000) * cut_share);
    this.#shorter = { seconds, since_ms: now_ms };
  }

  /** The first pull may ask for a longer wait than the camera allows (ONVIF Core, MaxTimeout of PullMessagesFaultResponse). */
  refused(): void {
    this.#max_s = Math.min(this.#max_s, short_pull_s);
  }

  /** Some answer at the end of the time alone, with what happened long before. */
  answered(body: XmlNode, asked_s: number, took_ms: number): void {
    const ages_ms = agesOf(body).filter((ms) => ms <= asked_s * 1_000);
    if (ages_ms.length === 0) return;
    const isLate = took_ms > asked_s * 900 && Math.max(...ages_ms) > late_min_ms;
    this.#late = isLate ? this.#late + 1 : 0;
    if (this.#late >= late_max) this.#max_s = Math.min(this.#max_s, late_pull_s);
  }
}

/** How long before the reply its changes happened, by the clock of the camera. */
function agesOf(body: XmlNode): readonly number[] {
  const now_ms = Date.parse(textAt(find(body, 'pullMessagesResponse'), 'currentTime') ?? '');
  return messagesIn(body)
    .map((each) => find(each, 'message', 'message'))
    .filter((message) => attribute(message, 'propertyOperation') === 'Changed')
    .map((message) => now_ms - Date.parse(attribute(message, 'utcTime') ?? ''));
}

export function messagesIn(body: XmlNode): readonly XmlNode[] {
  return all(find(body, 'pullMessagesResponse'), 'notificationMessage');
}
