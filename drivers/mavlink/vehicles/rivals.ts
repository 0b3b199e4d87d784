/** Other stations that send with our ids. */
import type { DriverLog } from '../../../src/toolkit/driver/driver.ts';
import { SeenRecently } from '../../../src/platform/seen-recently.ts';
import type { Link } from '../links/link.ts';
import { texts } from './texts.ts';

/** A station is present for this long after its last frame. */
const rival_ms = 30_000;
const links_max = 16;
/** Addresses that are remembered: more than a stranger uses who wants to hide the others. */
const sources_max = 1_024;

/** Where a station is received. */
interface Origin {
  readonly link: Link;
  /** The peer without its port. */
  readonly source: string;
}

/**
 * Other stations that use our system and component id: two kits on one radio net. Each takes the answers to the other for its own,
 * where they come from the same address: a stranger elsewhere, who can send with any ids, makes no answer doubtful.
 */
export class Rivals {
  readonly #links = new SeenRecently<Link>({ keep_ms: rival_ms, max: links_max });
  readonly #sources = new SeenRecently<string>({ keep_ms: rival_ms, max: sources_max });

  readonly #log: Pick<DriverLog, 'error'>;
  readonly #own: { readonly sysid: number; readonly compid: number };

  constructor(log: Pick<DriverLog, 'error'>, own: { readonly sysid: number; readonly compid: number }) {
    this.#log = log;
    this.#own = own;
  }

  /** Notes a frame of one; logs it when none was present at the link before. */
  seen({ link, source }: Origin, now_ms: number): void {
    const { sysid, compid } = this.#own;
    if (!this.has(link, now_ms))
      this.#log.error({ link: link.name, system_id: sysid, component_id: compid }, texts.rival);
    this.#links.note(link, true, now_ms);
    this.#sources.note(nameOf({ link, source }), true, now_ms);
  }

  has(link: Link, now_ms: number): boolean {
    return this.#links.has(link, now_ms);
  }

  /** Whether one is received from where a vehicle is. */
  isAt(place: Origin, now_ms: number): boolean {
    return this.#sources.has(nameOf(place), now_ms);
  }
}

function nameOf({ link, source }: Origin): string {
  return `${link.name} ${source}`;
}
