/** Holds each stream of messages to its rate: the newest held-back message is sent when its turn comes. */

/** Messages per second, by feed name; `default` for feeds that are not named. 0 sends none. */
export interface FeedRates {
  readonly default: number;
  readonly [feed: string]: number;
}

export interface PacedStream {
  /** Sends now, or keeps `send` until its turn. Answers true when an older one had to give way or the rate is 0. */
  offer(send: () => void): boolean;
  /** Forgets what is held back. */
  close(): void;
}

interface Stream {
  readonly feed: string;
  /** Between two messages, at `rates`. */
  pause_ms: number;
  rates: FeedRates | undefined;
  /** Monotonic time from which the next message may leave. */
  next_ms: number;
  /** When what is held back leaves: soon after `next_ms`, together with others. */
  turn_ms: number;
  held: (() => void) | undefined;
}

/** Turns are given on a beat of this, so that the messages of many streams wake the process once and share a packet. */
const beat_ms = 50;
/** A stream that is paced more densely gets its turns to the millisecond. */
const dense_pause_ms = 4 * beat_ms;

/** One timer serves all streams, and only while something is held back. When `signal` aborts, what is held is sent. */
export class Pacer {
  #rates: FeedRates;
  readonly #now_ms: () => number;
  readonly #signal: AbortSignal;
  /** Streams that hold a message back. */
  readonly #waiting = new Set<Stream>();
  #timer: NodeJS.Timeout | undefined;
  /** When the timer fires; infinite while there is none. */
  #due_ms = Number.POSITIVE_INFINITY;

  /** `now_ms` is monotonic. */
  constructor(rates: FeedRates, now_ms: () => number, signal: AbortSignal) {
    this.#rates = rates;
    this.#now_ms = now_ms;
    this.#signal = signal;
    signal.addEventListener('abort', () => this.#end(), { once: true });
  }

  /** Opens a separate stream for one feed of one asset. */
  open(feed: string): PacedStream {
    const never_ms = Number.NEGATIVE_INFINITY;
    const times = { pause_ms: 0, next_ms: never_ms, turn_ms: never_ms };
    const stream: Stream = { feed, rates: undefined, ...times, held: undefined };
    return {
      offer: (send) => this.#offer(stream, send),
      close: () => {
        this.#waiting.delete(stream);
        stream.held = undefined;
      },
    };
  }

  setRates(rates: FeedRates): void {
    this.#rates = rates;
    const now_ms = this.#now_ms();
    let due_ms = Number.POSITIVE_INFINITY;
    for (const stream of this.#waiting) {
      const pause_ms = this.#pause_ms(stream);
      stream.next_ms = Math.min(stream.next_ms, now_ms + pause_ms);
      stream.turn_ms = turnAt_ms(stream.next_ms, pause_ms);
      due_ms = Math.min(due_ms, stream.turn_ms);
    }
    this.#arm(due_ms, now_ms);
  }

  #offer(stream: Stream, send: () => void): boolean {
    const pause_ms = this.#pause_ms(stream);
    if (pause_ms === Number.POSITIVE_INFINITY) return true;
    const now_ms = this.#now_ms();
    // A later turn was scheduled at a lower rate than the current one.
    stream.next_ms = Math.min(stream.next_ms, now_ms + pause_ms);
    if (this.#signal.aborted || (stream.held === undefined && now_ms >= stream.next_ms)) {
      this.#take(stream, now_ms);
      send();
      return false;
    }
    const isReplaced = stream.held !== undefined;
    stream.held = send;
    if (isReplaced) return true;
    stream.turn_ms = turnAt_ms(stream.next_ms, pause_ms);
    this.#waiting.add(stream);
    // A later turn is found when the timer has fired for the earlier ones.
    if (stream.turn_ms < this.#due_ms) this.#arm(stream.turn_ms, now_ms);
    return false;
  }

  #pause_ms(stream: Stream): number {
    if (stream.rates !== this.#rates) {
      const own = Object.hasOwn(this.#rates, stream.feed) ? this.#rates[stream.feed] : undefined;
      stream.pause_ms = 1000 / (own ?? this.#rates.default);
      stream.rates = this.#rates;
    }
    return stream.pause_ms;
  }

  /** A stream that is a little late keeps its beat, so that its average rate is what was asked for. */
  #take(stream: Stream, now_ms: number): void {
    const pause_ms = this.#pause_ms(stream);
    const isInBeat = now_ms - stream.next_ms < pause_ms;
    stream.next_ms = (isInBeat ? stream.next_ms : now_ms) + pause_ms;
  }

  #arm(due_ms: number, now_ms: number): void {
    clearTimeout(this.#timer);
    this.#due_ms = due_ms;
    if (this.#waiting.size === 0 || this.#signal.aborted) return;
    const pause_ms = Math.min(timer_max_ms, Math.max(1, Math.ceil(due_ms - now_ms)));
    this.#timer = setTimeout(() => this.#sendDue(), pause_ms);
    this.#timer.unref();
  }

  #sendDue(): void {
    this.#due_ms = Number.POSITIVE_INFINITY;
    const now_ms = this.#now_ms();
    let due_ms = Number.POSITIVE_INFINITY;
    for (const stream of this.#waiting) {
      if (stream.next_ms > now_ms) {
        due_ms = Math.min(due_ms, stream.turn_ms);
        continue;
      }
      const send = stream.held;
      this.#waiting.delete(stream);
      stream.held = undefined;
      this.#take(stream, now_ms);
      send?.();
    }
    this.#arm(due_ms, now_ms);
  }

  /** No turn will come any more, so the newest of each stream is sent now. */
  #end(): void {
    clearTimeout(this.#timer);
    for (const { held } of this.#waiting) held?.();
    this.#waiting.clear();
  }
}

function turnAt_ms(next_ms: number, pause_ms: number): number {
  return pause_ms < dense_pause_ms ? next_ms : Math.ceil(next_ms / beat_ms) * beat_ms;
}

/** A longer pause would overflow the timer; it is armed again when it fires. */
const timer_max_ms = 86_400_000;
