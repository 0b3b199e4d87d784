/**
 * How much may be in flight. Live messages are bounded in number. The backlog is bounded in bytes too: by what the link
 * delivers in its shortest round trip and a short queue on top of it, so that a live message never waits behind it for
 * long. The rate and the shortest round trip are measured from the backlog's own PUBACKs (the idea of BBR congestion
 * control, with its gentle side only).
 */

const bytes_min = 8 * 1024;
const bytes_max = 1024 * 1024;
/** The queue that the backlog may build up on the way. */
const queue_ms = 60;
/** On a long link the window grows by so much in a round trip, until it is full. */
const growth = 1.25;
/** The rate is measured over a round trip, but not over less. */
const slot_min_ms = 50;
/** The best of so many slots counts: a pause of the kit is no sign of a slower link. */
const slots_kept = 4;
/** The shortest round trip is looked for over this time and the one before. */
const base_slot_ms = 30_000;
/** On a slower link a large batch would itself be the queue. */
const wide_bytes_per_ms = 100;
const batch_rows_narrow = 50;
const batch_rows_wide = 200;
/** Each batch costs a crossing between threads, two between processes and a PUBACK. */
const fast_bytes_per_ms = 400;
const batch_rows_fast = 400;
const fastest_bytes_per_ms = 1_600;
const batch_rows_fastest = 1_000;
/** Kept for live messages: a quarter of the window, but not more than these. */
const live_reserve_max = 8;

export class Window {
  readonly messages_max: number;
  readonly #now: () => number;
  #messages = 0;
  #backlog_messages = 0;
  #backlog_bytes = 0;
  #bytes_limit = bytes_min;
  #rtt_ms: number | undefined;
  #base: { current_ms: number; previous_ms: number; since_ms: number };
  #slot: { bytes: number; since_ms: number };
  /** Since when none of the backlog is in flight. */
  #idle_since_ms: number;
  #rates: readonly number[] = [];

  constructor(messages_max: number, now: () => number) {
    this.messages_max = messages_max;
    this.#now = now;
    this.#base = { current_ms: Infinity, previous_ms: Infinity, since_ms: now() };
    this.#slot = { bytes: 0, since_ms: now() };
    this.#idle_since_ms = now();
  }

  get in_flight(): number {
    return this.#messages;
  }

  /** Smoothed time from publish to PUBACK. */
  get rtt_ms(): number | undefined {
    return this.#rtt_ms;
  }

  get open(): boolean {
    return this.#messages < this.messages_max;
  }

  get open_for_backlog(): boolean {
    const reserve = Math.min(live_reserve_max, Math.ceil(this.messages_max / 4));
    const few = this.#backlog_messages < Math.max(1, this.messages_max - reserve);
    return few && this.#backlog_bytes < this.#bytes_limit;
  }

  get batch_rows(): number {
    const bytes_per_ms = this.#bytes_per_ms;
    if (bytes_per_ms < wide_bytes_per_ms) return batch_rows_narrow;
    if (bytes_per_ms < fast_bytes_per_ms) return batch_rows_wide;
    return bytes_per_ms < fastest_bytes_per_ms ? batch_rows_fast : batch_rows_fastest;
  }

  sent(bytes: number, { backlog }: { readonly backlog: boolean }): void {
    this.#messages += 1;
    if (!backlog) return;
    // A disk or a processor that is slower than the link leaves gaps, in which the link delivers nothing.
    if (this.#backlog_messages === 0) this.#slot.since_ms += this.#now() - this.#idle_since_ms;
    this.#backlog_messages += 1;
    this.#backlog_bytes += bytes;
  }

  acked(
    bytes: number,
    { backlog, delay_ms }: { readonly backlog: boolean; readonly delay_ms: number },
  ): void {
    this.#messages -= 1;
    this.#rtt_ms = this.#rtt_ms === undefined ? delay_ms : this.#rtt_ms + (delay_ms - this.#rtt_ms) / 8;
    this.#learnBase(delay_ms);
    if (!backlog) return;
    this.#backlog_messages -= 1;
    this.#backlog_bytes -= bytes;
    this.#slot.bytes += bytes;
    if (this.#backlog_messages === 0) this.#idle_since_ms = this.#now();
    this.#learnRate();
  }

  get #base_ms(): number {
    return Math.min(this.#base.current_ms, this.#base.previous_ms);
  }

  get #bytes_per_ms(): number {
    return Math.max(0, ...this.#rates);
  }

  #learnBase(delay_ms: number): void {
    if (this.#now() - this.#base.since_ms > base_slot_ms) {
      this.#base = { current_ms: Infinity, previous_ms: this.#base.current_ms, since_ms: this.#now() };
    }
    this.#base.current_ms = Math.min(this.#base.current_ms, delay_ms);
  }

  #learnRate(): void {
    const slot_ms = this.#now() - this.#slot.since_ms;
    if (slot_ms < Math.max(slot_min_ms, this.#base_ms)) return;
    this.#rates = [...this.#rates, this.#slot.bytes / slot_ms].slice(-slots_kept);
    this.#slot = { bytes: 0, since_ms: this.#now() };
    const room_ms = Math.max(this.#base_ms + queue_ms, this.#base_ms * growth);
    this.#bytes_limit = Math.min(bytes_max, Math.max(bytes_min, this.#bytes_per_ms * room_ms));
  }
}

/** Bytes that may go at once after a pause: what the rate gives in this time. */
const burst_ms = 2_000;

/** A token bucket for the backlog's bytes on links that are paid for. */
export class Budget {
  readonly #now: () => number;
  #tokens_bytes = 0;
  #filled_ms: number;

  constructor(now: () => number) {
    this.#now = now;
    this.#filled_ms = now();
  }

  /** Whether a message may go at `kbps` (1,000 bits a second; 0: no limit). The last one may overdraw. */
  allows(kbps: number): boolean {
    if (kbps <= 0) return true;
    const now_ms = this.#now();
    const bytes_per_ms = kbps / 8;
    const filled = this.#tokens_bytes + (now_ms - this.#filled_ms) * bytes_per_ms;
    this.#tokens_bytes = Math.min(filled, burst_ms * bytes_per_ms);
    this.#filled_ms = now_ms;
    return this.#tokens_bytes > 0;
  }

  spend(bytes: number): void {
    this.#tokens_bytes -= bytes;
  }
}
