/** The messages of this run that wait for the broker, by the importance of their lanes, and the order of retained values. */
import { type Lane, laneRules, lanes } from '../../../contract/lanes.ts';
import type { RowId } from '../row.ts';
import { texts } from '../texts.ts';
import { Fifo } from './fifo.ts';
import { type Live, outgoingId, type OutgoingMessage } from './outgoing.ts';

/** Waiting in memory; beyond these the oldest go to the disk at once. */
const live_rows_max = 4_096;
const live_bytes_max = 4 * 1024 * 1024;

const before_backlog: readonly Lane[] = ['task', 'presence', 'alarm'];
const beside_backlog: readonly Lane[] = ['kit', 'feed'];

/**
 * Messages of this run on their way to the broker: queued in order of their lanes, spilled to the disk when they wait too long.
 */
export class LiveLanes {
  readonly #queues = new Map<Lane, Fifo<Live>>(lanes.map((lane) => [lane, new Fifo<Live>()]));
  /** Of the lane `feed`, and behind all lanes. */
  readonly #behind = new Fifo<Live>();
  #rows = 0;
  #bytes = 0;

  get rows(): number {
    return this.#rows;
  }

  /** Characters of bodies. */
  get chars(): number {
    return this.#bytes;
  }

  rowsOf(lane: Lane): number {
    return this.#queue(lane).length + (lane === 'feed' ? this.#behind.length : 0);
  }

  get full(): boolean {
    return this.#rows >= live_rows_max || this.#bytes >= live_bytes_max;
  }

  /** A message that ends in another way stays in the queue and is skipped. */
  push(live: Live): void {
    (live.is_behind ? this.#behind : this.#queue(live.row.lane)).push(live);
    this.#rows += 1;
    this.#bytes += live.row.body.length;
  }

  /** The next of the lanes that go before the backlog. */
  shiftUrgent(): Live | undefined {
    return this.#shiftOf(before_backlog.map((lane) => this.#queue(lane)));
  }

  /** The next of the lanes that share the connection with the backlog. */
  shiftTelemetry(): Live | undefined {
    return this.#shiftOf(beside_backlog.map((lane) => this.#queue(lane)));
  }

  /** The next of those that wait behind all lanes. */
  shiftBehind(): Live | undefined {
    return this.#shiftOf([this.#behind]);
  }

  /** Telemetry that has waited for `age_ms`, all of it together with what came after, up to `rows_max`. */
  shiftPacket(now_ms: number, age_ms: number, rows_max: number): Live[] {
    const oldest_ms = Math.min(
      ...beside_backlog.map((lane) => this.#queue(lane).peek()?.since_ms ?? Infinity),
    );
    const packet: Live[] = [];
    if (now_ms - oldest_ms < age_ms) return packet;
    for (let live = this.shiftTelemetry(); live; live = this.shiftTelemetry()) {
      packet.push(live);
      if (packet.length >= rows_max) break;
    }
    return packet;
  }

  /** Takes out the lazy ones that have waited for longer than `age_ms`, and all that is over the limit. */
  shiftOverdue(now_ms: number, age_ms: number): Live[] {
    const overdue: Live[] = [];
    for (const queue of [this.#behind, ...lanes.toReversed().map((lane) => this.#queue(lane))]) {
      for (let live = queue.peek(); live; live = queue.peek()) {
        const isLazy = laneRules[live.row.lane].durability === 'lazy';
        const late = isLazy && now_ms - live.since_ms > age_ms;
        if (!late && !this.full) break;
        overdue.push(this.#take(queue) ?? live);
      }
    }
    return overdue;
  }

  drain(): Live[] {
    this.#rows = 0;
    this.#bytes = 0;
    return [...lanes.flatMap((lane) => this.#queue(lane).drain()), ...this.#behind.drain()];
  }

  #shiftOf(queues: readonly Fifo<Live>[]): Live | undefined {
    for (const queue of queues) {
      for (let live = this.#take(queue); live; live = this.#take(queue)) {
        if (live.state.place === 'queued') return live;
      }
    }
    return undefined;
  }

  #take(queue: Fifo<Live>): Live | undefined {
    const live = queue.shift();
    if (live) {
      this.#rows -= 1;
      this.#bytes -= live.row.body.length;
    }
    return live;
  }

  #queue(lane: Lane): Fifo<Live> {
    const queue = this.#queues.get(lane);
    if (!queue) throw new TypeError(texts.lane_unknown(lane));
    return queue;
  }
}

/** A kit has two retained channels for each asset; the channels unused for longest are forgotten. */
const channels_max = 4_096;

/**
 * The order of values on retained topics. Live rows, rows that were read ahead and replayed ones reach the uplink on different
 * ways; the broker keeps whatever comes last. So an older value is never handed out after a newer one of its channel.
 */
export class RetainedOrder {
  readonly #newest = new Map<string, RowId>();

  /** Notes what is handed out now. False: a newer value of its channel was handed out before. */
  admits(outgoing: OutgoingMessage): boolean {
    if (!outgoing.retain && !outgoing.removal) return true;
    const { channel } = outgoing;
    const id = outgoingId(outgoing);
    if (this.isOutdated(channel, id)) return false;
    this.#newest.delete(channel);
    this.#newest.set(channel, id);
    const [oldest] = this.#newest.size > channels_max ? this.#newest.keys() : [];
    if (oldest !== undefined) this.#newest.delete(oldest);
    return true;
  }

  isOutdated(channel: string, id: RowId): boolean {
    return id < (this.#newest.get(channel) ?? 0);
  }
}
