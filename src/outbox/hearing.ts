/**
 * Who listens. A broker that answers PUBACK 0x10 has the message and nobody to give it to: the message is kept, its kind
 * of channel rests, and one message probes from time to time whether somebody listens by now.
 */
import { channelKind } from '../contract/topics.ts';
import { backoff } from '../platform/time.ts';

const probe_first_ms = 1_000;
const probe_max_ms = 30_000;

interface Rest {
  until_ms: number;
  readonly pauses: Iterator<number, never>;
}

export class Hearing {
  readonly #resting = new Map<string, Rest>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** May a message of this channel be sent now? After a rest, the first that asks is the probe. */
  allows(channel: string): boolean {
    const rest = this.#resting.size > 0 ? this.#resting.get(channelKind(channel)) : undefined;
    if (!rest) return true;
    if (this.#now() < rest.until_ms) return false;
    this.#restAgain(rest);
    return true;
  }

  /** The same question without asking for the probe. */
  rests(channel: string): boolean {
    const rest = this.#resting.size > 0 ? this.#resting.get(channelKind(channel)) : undefined;
    return rest !== undefined && this.#now() < rest.until_ms;
  }

  heard(channel: string): void {
    if (this.#resting.size > 0) this.#resting.delete(channelKind(channel));
  }

  unheard(channel: string): void {
    const kind = channelKind(channel);
    if (this.#resting.has(kind)) return;
    const rest = { until_ms: 0, pauses: backoff(probe_first_ms, probe_max_ms) };
    this.#restAgain(rest);
    this.#resting.set(kind, rest);
  }

  /** A new connection may have other listeners: everything is probed at once. */
  reset(): void {
    this.#resting.clear();
  }

  /** Kinds of channels nobody listens to, for the status. */
  kinds(): readonly string[] {
    return [...this.#resting.keys()];
  }

  #restAgain(rest: Rest): void {
    rest.until_ms = this.#now() + rest.pauses.next().value;
  }
}
