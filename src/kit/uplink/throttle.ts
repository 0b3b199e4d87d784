/**
 * How many messages a second a broker takes. Brokers of clouds have limits that MQTT does not announce, and tell them in their own
 * ways: AWS IoT Core leaves the messages above 100 a second without a PUBACK, or answers 0x97; others end the connection with 0x96 or
 * 0x97. What it acknowledged before is what it takes.
 */
import { TokenBucket } from '../../platform/token-bucket.ts';
import type { Problems } from './problems.ts';
import { texts } from './texts.ts';

const slot_ms = 1_000;
/** The best second of so many counts: others were not full, or were cut short. */
const slots_kept = 30;
/** Of what was acknowledged in it. */
const share = 0.9;
/** In any second no more than the limit may leave: a little at once, the rest at an even pace. */
const burst_share = 0.1;
/** One lesson for each burst. */
const lesson_pause_ms = 2_000;
/** A broker that took fewer has another reason: a plan that has run out, a disk that is full. */
const lesson_messages_min = 5;
/** What was learnt from a bad moment heals: a little more is tried after each of these times, and all of it after a day. */
const raise_ms = 1_800_000;
const raise = 1.1;
const forget_ms = 86_400_000;
/** Live messages leave together, once in this time, where they are more than this share of what the broker takes. */
const limited_packet_ms = 1_000;
const packet_share = 0.5;

interface ThrottleOptions {
  /** Monotonic time. */
  readonly now: () => number;
  /** As configured, or as the documents of the broker say; 0: none. */
  readonly configured: () => number;
  readonly problems: Pick<Problems, 'note'>;
}

export class Throttle {
  readonly #options: ThrottleOptions;
  #learnt: { readonly messages_per_s: number; readonly at_ms: number } | undefined;
  /** The broker took some since the limit was learnt. */
  #takesSome = false;
  readonly #acknowledged = new PerSecond();
  /** Messages that left, each of a packet. */
  readonly #sent = new PerSecond();
  /** For the limit of now. */
  #bucket: { readonly limit: number; readonly tokens: TokenBucket } | undefined;

  constructor(options: ThrottleOptions) {
    this.#options = options;
  }

  /** Messages a second; undefined: no limit is known. */
  get limit(): number | undefined {
    const { now, configured } = this.#options;
    const age_ms = this.#learnt === undefined ? Infinity : now() - this.#learnt.at_ms;
    if (age_ms > forget_ms) this.#learnt = undefined;
    const learnt = this.#learnt && this.#learnt.messages_per_s * raise ** Math.floor(age_ms / raise_ms);
    const limit = Math.min(configured() || Infinity, learnt ?? Infinity);
    return limit === Infinity ? undefined : limit;
  }

  /** The least time of a packet of live messages. */
  get packet_ms(): number {
    const { limit } = this;
    return limit !== undefined && this.#sent.best > packet_share * limit ? limited_packet_ms : 0;
  }

  /** Until the next message may leave; 0: it may now. */
  waitMs(): number {
    const { limit } = this;
    if (limit !== this.#bucket?.limit) this.#bucket = limit === undefined ? undefined : bucketFor(limit);
    return this.#bucket?.tokens.wait_ms(this.#options.now()) ?? 0;
  }

  /** `lives`: live messages in it. */
  sent(lives: number): void {
    const now_ms = this.#options.now();
    this.#bucket?.tokens.take(now_ms);
    this.#sent.count(now_ms, lives);
  }

  acknowledged(): void {
    this.#takesSome = true;
    this.#acknowledged.count(this.#options.now(), 1);
  }

  /** The broker did not take what was sent. False: its rate is not why, since it takes none or next to none. */
  exceeded(): boolean {
    const { now, problems } = this.#options;
    const now_ms = now();
    if (this.#learnt && now_ms - this.#learnt.at_ms < lesson_pause_ms) return true;
    const { best } = this.#acknowledged;
    if (best < lesson_messages_min || (this.#learnt && !this.#takesSome)) return false;
    const messages_per_s = Math.max(1, Math.floor(Math.min(best, this.limit ?? Infinity) * share));
    this.#learnt = { messages_per_s, at_ms: now_ms };
    this.#takesSome = false;
    problems.note('rate', {
      sentence: texts.rate_limited(messages_per_s),
      line: texts.rate_learnt,
      facts: { messages_per_s },
      lasts: 'for_a_while',
    });
    return true;
  }
}

/** Counts by the second. */
class PerSecond {
  #slots: readonly number[] = [];
  #slot = { from_ms: 0, messages: 0 };

  /** Of the last `slots_kept` seconds in which there was anything to count. */
  get best(): number {
    return Math.max(this.#slot.messages, ...this.#slots);
  }

  count(now_ms: number, messages: number): void {
    if (now_ms - this.#slot.from_ms >= slot_ms) {
      this.#slots = [...this.#slots, this.#slot.messages].slice(-slots_kept);
      this.#slot = { from_ms: now_ms, messages: 0 };
    }
    this.#slot.messages += messages;
  }
}

function bucketFor(limit: number): { readonly limit: number; readonly tokens: TokenBucket } {
  const rate = { perSecond: limit * (1 - burst_share), burst: Math.max(1, limit * burst_share) };
  return { limit, tokens: new TokenBucket(rate) };
}
