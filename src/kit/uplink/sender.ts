/** Publishes what the outbox hands out over one session, within the window, and notices when the broker falls silent. */
import { channelKind, upTopic } from '../../contract/topics.ts';
import type { Dispatch } from '../outbox/live/dispatch.ts';
import type { OutgoingMessage } from '../outbox/live/outgoing.ts';
import type { Outgoing, Session } from '../../mqtt/session.ts';
import { every, sleep } from '../../platform/time.ts';
import type { Suspicion } from './problems.ts';
import type { Throttle } from './throttle.ts';
import { texts } from './texts.ts';

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

/**
 * How much may be in flight. Live messages are bounded in number. The backlog is bounded in bytes too: by what the link
 * delivers in its shortest round trip and a short queue on top of it, so that a live message never waits behind it for
 * long. The rate and the shortest round trip are measured from the backlog's own PUBACKs (the idea of BBR congestion
 * control, with its gentle side only).
 */
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

/** Silence of the broker while something is in flight, before the connection is given up. */
const silence_ms = 4_000;
const silence_rtts = 4;
/** A message that is behind an answered ping is acknowledged by then, even where the broker waits for a disk or another node. */
const withheld_ms = 5_000;
const quiet_ms = 1_000;
/** One PUBACK that never comes, while others do. */
const puback_missing_ms = 60_000;
const watch_every_ms = 250;
/** Live values that no client fetched from the broker by then are history. */
const feed_expiry_s = 300;
const kit_expiry_s = 3_600;
/** Fixed header, packet identifier, lengths and properties, at most. */
const packet_overhead_bytes = 32;

const too_large = 0x95;

export interface Pace {
  readonly window_messages: number;
  /** Live telemetry in packets of this time; 0: at once. Asked every second. */
  readonly packetMs: () => number;
  /** Cap of the backlog on the link in use, kbit/s; 0: none. Asked all the time. */
  readonly backlogKbps: () => number;
  /** Messages a second, of all kinds; 0: no cap. Asked all the time. */
  readonly messagesPerSMax: () => number;
}

interface SenderOptions {
  readonly kit_id: string;
  readonly session: Pick<
    Session,
    | 'publish'
    | 'ping'
    | 'destroy'
    | 'last_received_ms'
    | 'is_skipping'
    | 'receive_maximum'
    | 'packet_bytes_max'
  >;
  readonly dispatch: Pick<Dispatch, 'next' | 'acknowledged' | 'refused' | 'requeue' | 'setBatchRows'>;
  readonly pace: Pace;
  readonly suspicion: Suspicion;
  readonly throttle: Throttle;
  /** The broker leaves messages unacknowledged, and only another connection may send them again. */
  readonly onWithheld: () => void;
  /** Monotonic time, as that of the session. */
  readonly now: () => number;
  /** Receives every PUBACK. */
  readonly onAcknowledged: (message: Acknowledged) => void;
  /** Receives the code of each refusal. True: the broker takes it at a lower rate. */
  readonly onRefused: (code: number) => boolean;
  /** The broker took it. */
  readonly onDelivered: (outgoing: OutgoingMessage) => void;
}

/** A removal under way. */
interface Half {
  readonly outgoing: OutgoingMessage;
  readonly topic: string;
  /** Of the envelope, until the empty payload is answered too. */
  answer: { readonly code: number; readonly reason: string } | undefined;
}

export interface Acknowledged {
  readonly bytes: number;
  /** Since the message was sent. */
  readonly delay_ms: number;
}

export class Sender {
  readonly window: Window;
  readonly #options: SenderOptions;
  readonly #budget: Budget;
  readonly #signal: AbortSignal;
  readonly #sent = new Map<OutgoingMessage, number>();
  /** Removals whose envelope was published and whose empty payload was not yet: nothing goes between the two. */
  readonly #half_sent: Half[] = [];
  /** Handed out, and held until nothing else is in flight. */
  #suspect: OutgoingMessage | undefined;
  /** What is in flight is to stay alone. */
  #is_alone = false;
  #is_pinging = false;
  /** A ping that was sent at this time was answered; those before it were acknowledged by then, or will not be. */
  #ponged_ms = Number.NEGATIVE_INFINITY;
  /** At the check before. */
  #was_silent = false;
  #pump_due = false;

  constructor(options: SenderOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
    const messages_max = Math.min(options.pace.window_messages, options.session.receive_maximum);
    this.window = new Window(messages_max, options.now);
    this.#budget = new Budget(options.now);
    every(watch_every_ms, signal, () => this.#watch());
    this.wake();
  }

  get in_flight(): readonly OutgoingMessage[] {
    return [...this.#sent.keys()];
  }

  /** There may be something to send. Appends come in bursts: one turn of the event loop gathers them. */
  wake(): void {
    if (this.#pump_due) return;
    this.#pump_due = true;
    setImmediate(() => {
      this.#pump_due = false;
      this.#pump();
    });
  }

  #pump(): void {
    const { dispatch, pace } = this.#options;
    while (this.window.open && this.#isInTime()) {
      const half = this.#half_sent.shift();
      if (half) {
        this.#publishEmpty(half);
        continue;
      }
      if (this.#waitsAlone()) return;
      const backlog = this.window.open_for_backlog && this.#budget.allows(pace.backlogKbps());
      const outgoing = dispatch.next({ backlog });
      if (!outgoing) return;
      if (this.#options.suspicion.isolates(outgoing)) this.#suspect = outgoing;
      else this.#publish(outgoing);
    }
  }

  /** Whether the broker takes another message now; else it is tried again when it does. */
  #isInTime(): boolean {
    const wait_ms = this.#options.throttle.waitMs();
    if (wait_ms <= 0) return true;
    void this.#pumpAfter(wait_ms);
    return false;
  }

  async #pumpAfter(wait_ms: number): Promise<void> {
    this.#pump_due = true;
    await sleep(Math.ceil(wait_ms), this.#signal);
    this.#pump_due = false;
    if (!this.#signal.aborted) this.#pump();
  }

  /** Whether nothing more may be sent now: what is suspected of making the broker hang up is sent alone, after signs of life. */
  #waitsAlone(): boolean {
    const { suspicion, session } = this.#options;
    const isBusy = this.window.in_flight > 0;
    const suspect = this.#suspect;
    if (!suspect) return isBusy && (suspicion.cautious || this.#is_alone);
    if (isBusy) return true;
    if (suspicion.isCalm) {
      this.#suspect = undefined;
      this.#is_alone = true;
      this.#publish(suspect);
    } else if (!this.#is_pinging) {
      this.#is_pinging = true;
      session.ping(() => {
        this.#is_pinging = false;
        suspicion.ponged();
        this.wake();
      });
    }
    return true;
  }

  #publish(outgoing: OutgoingMessage): void {
    const { session, kit_id, dispatch } = this.#options;
    const topic = upTopic(kit_id, outgoing.channel);
    const bytes = outgoing.payload.length + topic.length + packet_overhead_bytes;
    if (packetBytes(outgoing, bytes) > session.packet_bytes_max) {
      dispatch.refused(
        outgoing,
        too_large,
        `larger than the ${session.packet_bytes_max} bytes that the broker takes`,
      );
      return;
    }
    const sent_ms = this.#options.now();
    this.#sent.set(outgoing, sent_ms);
    if (outgoing.backlog) this.#budget.spend(bytes);
    const message = {
      topic,
      payload: outgoing.payload,
      retain: outgoing.retain,
      expiry_s: expiryOf(outgoing),
    };
    const half: Half | undefined = outgoing.removal ? { outgoing, topic, answer: undefined } : undefined;
    if (half) this.#half_sent.push(half);
    this.#send(outgoing, bytes, message, half);
  }

  /** The second part of a removal: the broker forgets what it has retained. */
  #publishEmpty(half: Half): void {
    const { outgoing, topic } = half;
    const message = { topic, payload: '', retain: true };
    this.#send(outgoing, topic.length + packet_overhead_bytes, message, half);
  }

  /** `half`: of a removal. */
  #send(outgoing: OutgoingMessage, bytes: number, message: Outgoing, half: Half | undefined): void {
    const sent_ms = this.#options.now();
    this.window.sent(bytes, outgoing);
    this.#options.throttle.sent(outgoing.backlog ? 0 : outgoing.rows);
    this.#options.session.publish(message, ({ code, reason }) => {
      const delay_ms = this.#options.now() - sent_ms;
      this.window.acked(bytes, { backlog: outgoing.backlog, delay_ms });
      this.#options.onAcknowledged({ bytes, delay_ms });
      if (half) this.#halfAnswered(half, code, reason);
      else this.#ended(outgoing, code, reason);
      this.wake();
    });
  }

  /** PUBACKs come in order. A refusal of either part counts; only the envelope shows whether there is a subscriber. */
  #halfAnswered(half: Half, code: number, reason: string): void {
    const { outgoing, answer } = half;
    if (!answer) half.answer = { code, reason };
    else if (answer.code >= 0x80 || code < 0x80) this.#ended(outgoing, answer.code, answer.reason);
    else this.#ended(outgoing, code, reason);
  }

  #ended(outgoing: OutgoingMessage, code: number, reason: string): void {
    this.#sent.delete(outgoing);
    this.#is_alone = false;
    this.#answered(outgoing, code, reason);
  }

  #answered(outgoing: OutgoingMessage, code: number, reason: string): void {
    const { dispatch, suspicion, throttle } = this.#options;
    suspicion.answered(outgoing);
    if (code < 0x80) {
      throttle.acknowledged();
      this.#options.onDelivered(outgoing);
      dispatch.acknowledged(outgoing, { hasSubscribers: code !== 0x10 });
      dispatch.setBatchRows(this.window.batch_rows);
      return;
    }
    if (this.#options.onRefused(code)) dispatch.requeue(outgoing);
    else dispatch.refused(outgoing, code, reason);
  }

  #watch(): void {
    this.wake();
    const [oldest_ms] = this.#sent.values();
    if (oldest_ms === undefined) return;
    const { session } = this.#options;
    const now_ms = this.#options.now();
    const silent_ms = now_ms - Math.max(session.last_received_ms, oldest_ms);
    const isSilent = silent_ms > Math.max(silence_ms, silence_rtts * (this.window.rtt_ms ?? 0));
    // After a stall of this process the timer comes before the answer that waits in the socket: the next check has seen it.
    const wasSilent = this.#was_silent;
    this.#was_silent = isSilent;
    if (isSilent) {
      if (!wasSilent) return;
      session.destroy(`no answer from the broker for ${(silent_ms / 1000).toFixed(1)} s`);
    } else if (this.#isWithheld(oldest_ms, now_ms)) {
      this.#options.throttle.exceeded();
      this.#options.onWithheld();
      session.destroy(texts.acknowledgements_withheld);
      // PUBACKs wait behind a large message that comes over a slow link.
    } else if (now_ms - oldest_ms > puback_missing_ms && !session.is_skipping) {
      session.destroy(`the broker did not acknowledge a message for ${puback_missing_ms / 1000} s`);
    }
  }

  /** The broker answers pings that were sent behind the oldest message, and not the message. */
  #isWithheld(oldest_ms: number, now_ms: number): boolean {
    const { session } = this.#options;
    if (now_ms - oldest_ms < withheld_ms / 2 || session.is_skipping) return false;
    if (this.#ponged_ms > oldest_ms) return now_ms - oldest_ms > withheld_ms;
    // What arrives may be what the answer waits behind.
    const isQuiet = now_ms - session.last_received_ms > quiet_ms;
    if (isQuiet && !this.#is_pinging) {
      this.#is_pinging = true;
      session.ping(() => {
        this.#is_pinging = false;
        this.#ponged_ms = now_ms;
      });
    }
    return false;
  }
}

/** A string of `length` characters can be three times as many bytes; it is counted exactly only when that could matter. */
function packetBytes(outgoing: OutgoingMessage, estimate: number): number {
  if (typeof outgoing.payload !== 'string') return estimate;
  return estimate - outgoing.payload.length + Buffer.byteLength(outgoing.payload);
}

function expiryOf(outgoing: OutgoingMessage): number | undefined {
  if (outgoing.backlog || channelKind(outgoing.channel) === 'batch') return undefined;
  if (outgoing.lane === 'feed') return feed_expiry_s;
  return outgoing.lane === 'kit' ? kit_expiry_s : undefined;
}
