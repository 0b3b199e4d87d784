/** Kinds of channels that are not sent for now: after a growing pause, one message of the kind is let through as a probe. */
import { channelKind } from '../../../contract/topics.ts';
import { backoff } from '../../../platform/time.ts';

export interface PauseLengths {
  readonly first_ms: number;
  readonly max_ms: number;
}

const lengths_default: PauseLengths = { first_ms: 1_000, max_ms: 30_000 };

interface Pause {
  until_ms: number;
  readonly lengths: Iterator<number, never>;
}

export class KindPauses {
  readonly #paused = new Map<string, Pause>();
  readonly #now: () => number;
  readonly #lengths: PauseLengths;

  constructor(now: () => number, lengths = lengths_default) {
    this.#now = now;
    this.#lengths = lengths;
  }

  /** Since when a probe is due; undefined while the kind is paused; -Infinity when it is not paused at all. */
  probeDue(channel: string): number | undefined {
    const pause = this.#of(channel);
    if (!pause) return Number.NEGATIVE_INFINITY;
    return this.#now() < pause.until_ms ? undefined : pause.until_ms;
  }

  /** Whether a message of this channel may be sent now. After a pause, the first that asks is the probe. */
  allows(channel: string): boolean {
    const pause = this.#of(channel);
    if (!pause) return true;
    if (this.#now() < pause.until_ms) return false;
    this.#lengthen(pause);
    return true;
  }

  /** The same question without asking for the probe. */
  rests(channel: string): boolean {
    const pause = this.#of(channel);
    return pause !== undefined && this.#now() < pause.until_ms;
  }

  /** False: it was paused before. */
  pause(channel: string): boolean {
    if (this.#of(channel)) return false;
    const pause = { until_ms: 0, lengths: backoff(this.#lengths.first_ms, this.#lengths.max_ms) };
    this.#lengthen(pause);
    this.#paused.set(channelKind(channel), pause);
    return true;
  }

  resume(channel: string): void {
    if (this.#paused.size > 0) this.#paused.delete(channelKind(channel));
  }

  has(kind: string): boolean {
    return this.#paused.has(kind);
  }

  /** Every kind may send its probe now; the pauses after it are as long as before. */
  probeAll(): void {
    for (const pause of this.#paused.values()) pause.until_ms = this.#now();
  }

  clear(): void {
    this.#paused.clear();
  }

  kinds(): readonly string[] {
    return [...this.#paused.keys()];
  }

  #of(channel: string): Pause | undefined {
    return this.#paused.size > 0 ? this.#paused.get(channelKind(channel)) : undefined;
  }

  #lengthen(pause: Pause): void {
    pause.until_ms = this.#now() + pause.lengths.next().value;
  }
}
