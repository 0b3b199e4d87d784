/**
 * Finds a message that makes the broker hang up. Some brokers close the connection instead of refusing a message; sent
 * again first thing after every reconnect, it would block the line for ever. After two such losses one message at a time
 * is sent, and one that was alone in flight at three losses is handed over as the culprit.
 */
import type { Parcel } from '../outbox/parcel.ts';

const losses_until_cautious = 2;
const strikes_max = 3;
/** Acknowledged messages that end the caution. */
const acks_to_trust = 16;
/** Culprits that are looked for at once; the oldest is forgotten. */
const suspects_max = 64;

export class Suspicion {
  #losses = 0;
  #acks = 0;
  readonly #strikes = new Map<number, number>();

  /** One message at a time, until trust is back. */
  get cautious(): boolean {
    return this.#losses >= losses_until_cautious;
  }

  acked(): void {
    if (this.#losses === 0) return;
    this.#acks += 1;
    if (this.#acks < acks_to_trust) return;
    this.#losses = 0;
    this.#strikes.clear();
  }

  /** The broker hung up while these were in flight. Answers the culprit, once it is found. */
  hungUp(in_flight: readonly Parcel[]): Parcel | undefined {
    const [only] = in_flight;
    if (!only) return undefined;
    this.#losses += 1;
    this.#acks = 0;
    if (in_flight.length > 1) return undefined;
    // To split a batch costs nothing, so it needs no further proof.
    if (only.content.kind === 'batch' || only.content.kind === 'packet') return only;
    const key = keyOf(only);
    const strikes = (this.#strikes.get(key) ?? 0) + 1;
    this.#strikes.delete(key);
    if (strikes >= strikes_max) return only;
    this.#strikes.set(key, strikes);
    const [oldest] = this.#strikes.keys();
    if (this.#strikes.size > suspects_max && oldest !== undefined) this.#strikes.delete(oldest);
    return undefined;
  }
}

/** The first row that a parcel carries: the same one after it was read back from the disk. */
function keyOf({ content }: Parcel): number {
  switch (content.kind) {
    case 'live':
      return content.live.row.id;
    case 'packet':
      return content.lives[0]?.row.id ?? 0;
    case 'row':
      return content.row.id;
    case 'batch':
      return content.batch.lo;
    case 'echo':
      return 0;
    default:
      return content satisfies never;
  }
}
