/**
 * How much may be in flight. Live messages are bounded in number. The backlog is bounded in bytes too, by the delay of
 * its own PUBACKs: it grows while the link has room and shrinks as soon as a queue builds up, so that a live message
 * never waits behind it for long (the idea of RFC 6817, LEDBAT).
 */
const bytes_start = 16 * 1024;
const bytes_min = 4 * 1024;
const bytes_max = 1024 * 1024;
/** The queue that the backlog may build up on the way. */
const queue_target_ms = 100;
const shrink = 0.75;
/** The shortest round trip is looked for over this time and the one before. */
const base_slot_ms = 30_000;
/** On a narrow link a large batch would itself be the queue. */
const narrow_bytes = 48 * 1024;
const batch_rows_narrow = 50;
const batch_rows_wide = 200;
const backlog_share = 0.75;

export class Window {
  readonly messages_max: number;
  readonly #now: () => number;
  #messages = 0;
  #backlog_messages = 0;
  #backlog_bytes = 0;
  #bytes_limit = bytes_start;
  #slow_start = true;
  #shrunk_ms = Number.NEGATIVE_INFINITY;
  #rtt_ms: number | undefined;
  #base = { current_ms: Infinity, previous_ms: Infinity, since_ms: 0 };

  constructor(messages_max: number, now: () => number) {
    this.messages_max = messages_max;
    this.#now = now;
    this.#base.since_ms = now();
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
    const few = this.#backlog_messages < Math.max(1, Math.floor(this.messages_max * backlog_share));
    return few && this.#backlog_bytes < this.#bytes_limit;
  }

  get batch_rows(): number {
    return this.#bytes_limit < narrow_bytes ? batch_rows_narrow : batch_rows_wide;
  }

  sent(bytes: number, { backlog }: { readonly backlog: boolean }): void {
    this.#messages += 1;
    if (!backlog) return;
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
    const was_full = this.#backlog_bytes * 2 >= this.#bytes_limit;
    this.#backlog_messages -= 1;
    this.#backlog_bytes -= bytes;
    if (delay_ms > this.#base_ms + queue_target_ms) this.#shrink(delay_ms);
    else if (was_full) this.#grow(bytes);
  }

  get #base_ms(): number {
    return Math.min(this.#base.current_ms, this.#base.previous_ms);
  }

  #learnBase(delay_ms: number): void {
    if (this.#now() - this.#base.since_ms > base_slot_ms) {
      this.#base = { current_ms: Infinity, previous_ms: this.#base.current_ms, since_ms: this.#now() };
    }
    this.#base.current_ms = Math.min(this.#base.current_ms, delay_ms);
  }

  #grow(bytes: number): void {
    const step = this.#slow_start ? bytes : (bytes * bytes) / this.#bytes_limit;
    this.#bytes_limit = Math.min(bytes_max, this.#bytes_limit + step);
  }

  /** At most once in a round trip: one queue is one sign. */
  #shrink(delay_ms: number): void {
    this.#slow_start = false;
    if (this.#now() - this.#shrunk_ms < delay_ms) return;
    this.#shrunk_ms = this.#now();
    this.#bytes_limit = Math.max(bytes_min, this.#bytes_limit * shrink);
  }
}
