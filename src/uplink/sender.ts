/** Publishes what the outbox hands out over one session, within the window, and notices when the broker falls silent. */
import { channelKind, upTopic } from '../contract/topics.ts';
import type { Dispatch } from '../outbox/dispatch.ts';
import type { Parcel } from '../outbox/parcel.ts';
import { every } from '../platform/time.ts';
import { Budget } from './budget.ts';
import type { Session } from './session.ts';
import type { Suspicion } from './suspicion.ts';
import { Window } from './window.ts';

/** Silence of the broker while something is in flight, before the connection is given up. */
const silence_ms = 4_000;
const silence_rtts = 4;
/** One PUBACK that never comes, while others do. */
const puback_missing_ms = 60_000;
const watch_every_ms = 250;
/** Live values that nobody fetched from the broker by then are history. */
const feed_expiry_s = 300;
const kit_expiry_s = 3_600;
/** Fixed header, packet identifier, lengths and properties, at most. */
const packet_overhead_bytes = 32;

/** MQTT 5 PUBACK codes that no repetition heals: not authorised, topic invalid, packet too large, payload format invalid. */
const hopeless: ReadonlyMap<number, string> = new Map([
  [0x87, 'not authorised to publish here'],
  [0x90, 'topic name invalid'],
  [0x95, 'packet too large'],
  [0x99, 'payload format invalid'],
]);
const too_large = 0x95;

export interface Pace {
  readonly window_messages: number;
  /** Live telemetry in packets of this time; 0: at once. Asked when a connection begins. */
  readonly packetMs: () => number;
  /** Cap of the backlog on the link in use, kbit/s; 0: none. Asked all the time. */
  readonly backlogKbps: () => number;
}

interface SenderOptions {
  readonly kit_id: string;
  readonly session: Session;
  readonly dispatch: Dispatch;
  readonly pace: Pace;
  readonly suspicion: Suspicion;
  /** Told of every PUBACK. */
  readonly onAcknowledged: (message: Acknowledged) => void;
}

export interface Acknowledged {
  readonly bytes: number;
  /** Since the message was sent. */
  readonly delay_ms: number;
}

export class Sender {
  readonly window: Window;
  readonly #options: SenderOptions;
  readonly #budget = new Budget(() => performance.now());
  readonly #sent = new Map<Parcel, number>();
  #pump_due = false;
  #backing_off_until_ms = 0;

  constructor(options: SenderOptions, signal: AbortSignal) {
    this.#options = options;
    const messages_max = Math.min(options.pace.window_messages, options.session.receive_maximum);
    this.window = new Window(messages_max, () => performance.now());
    options.dispatch.onReady = () => this.#pumpSoon();
    every(watch_every_ms, signal, () => this.#watch());
    this.#pumpSoon();
  }

  get in_flight(): readonly Parcel[] {
    return [...this.#sent.keys()];
  }

  /** Appends come in bursts: one turn of the event loop gathers them. */
  #pumpSoon(): void {
    if (this.#pump_due) return;
    this.#pump_due = true;
    setImmediate(() => {
      this.#pump_due = false;
      this.#pump();
    });
  }

  #pump(): void {
    const { dispatch, pace } = this.#options;
    if (performance.now() < this.#backing_off_until_ms) return;
    while (this.window.open && (this.window.in_flight === 0 || !this.#options.suspicion.cautious)) {
      const backlog = this.window.open_for_backlog && this.#budget.allows(pace.backlogKbps());
      const parcel = dispatch.next({ backlog });
      if (!parcel) return;
      this.#publish(parcel);
    }
  }

  #publish(parcel: Parcel): void {
    const { session, kit_id, dispatch } = this.#options;
    const topic = upTopic(kit_id, parcel.channel);
    const bytes = parcel.payload.length + topic.length + packet_overhead_bytes;
    if (packetBytes(parcel, bytes) > session.packet_bytes_max) {
      dispatch.refused(
        parcel,
        too_large,
        `larger than the ${session.packet_bytes_max} bytes that the broker takes`,
      );
      return;
    }
    const sent_ms = performance.now();
    this.#sent.set(parcel, sent_ms);
    this.window.sent(bytes, parcel);
    if (parcel.backlog) this.#budget.spend(bytes);
    const message = { topic, payload: parcel.payload, retain: parcel.retain, expiry_s: expiryOf(parcel) };
    session.publish(message, (code, reason) => {
      this.#sent.delete(parcel);
      const delay_ms = performance.now() - sent_ms;
      this.window.acked(bytes, { backlog: parcel.backlog, delay_ms });
      this.#options.onAcknowledged({ bytes, delay_ms });
      this.#answered(parcel, code, reason);
      this.#pumpSoon();
    });
  }

  #answered(parcel: Parcel, code: number, reason: string): void {
    const { dispatch, suspicion } = this.#options;
    if (code < 0x80) {
      dispatch.acknowledged(parcel, { heard: code !== 0x10 });
      dispatch.setBatchRows(this.window.batch_rows);
      suspicion.acked();
      return;
    }
    const why = hopeless.get(code);
    if (why) {
      dispatch.refused(parcel, code, reason || why);
      return;
    }
    // Quota exceeded, busy, unspecified: the broker may take it later.
    dispatch.giveBack(parcel);
    this.#backing_off_until_ms = performance.now() + watch_every_ms * 4;
  }

  #watch(): void {
    this.#pumpSoon();
    const [oldest_ms] = this.#sent.values();
    if (oldest_ms === undefined) return;
    const { session } = this.#options;
    const now_ms = performance.now();
    const silent_ms = now_ms - Math.max(session.heard_ms, oldest_ms);
    if (silent_ms > Math.max(silence_ms, silence_rtts * (this.window.rtt_ms ?? 0))) {
      session.destroy(`no answer from the broker for ${(silent_ms / 1000).toFixed(1)} s`);
    } else if (now_ms - oldest_ms > puback_missing_ms) {
      session.destroy(`the broker did not acknowledge a message for ${puback_missing_ms / 1000} s`);
    }
  }
}

/** A string of `length` characters can be three times as many bytes; it is counted exactly only when that could matter. */
function packetBytes(parcel: Parcel, estimate: number): number {
  if (typeof parcel.payload !== 'string') return estimate;
  return estimate - parcel.payload.length + Buffer.byteLength(parcel.payload);
}

function expiryOf(parcel: Parcel): number | undefined {
  if (parcel.backlog || channelKind(parcel.channel) === 'batch') return undefined;
  if (parcel.lane === 'feed') return feed_expiry_s;
  return parcel.lane === 'kit' ? kit_expiry_s : undefined;
}
