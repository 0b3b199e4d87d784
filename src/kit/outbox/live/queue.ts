/** The messages of this run that wait for the broker, by the importance of their lanes, and the choice of the next one to send. */
import { type Lane, laneRules, lanes } from '../../../contract/lanes.ts';
import { texts } from '../texts.ts';
import {
  type ClockOffset,
  type Live,
  outgoingId,
  type OutgoingMessage,
  outgoingOfLive,
  outgoingOfPacket,
} from './outgoing.ts';
import type { RowId } from '../row.ts';
import type { Backlog, BatchSize } from './backlog.ts';
import { type Committer, sync_commit_ms } from './committer.ts';
import type { LiveMoves } from './live-state.ts';
import type { Replay, Returns } from './delivery.ts';
import type { Gate } from './gate.ts';

/** A first-in-first-out queue whose shift does not move the rest. */
export class Fifo<T> {
  /** What was taken out is released at once: a slot before the head holds nothing. */
  #items: (T | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  peek(): T | undefined {
    return this.#items[this.#head];
  }

  shift(): T | undefined {
    const item = this.#items[this.#head];
    if (item === undefined) return undefined;
    this.#items[this.#head] = undefined;
    this.#head += 1;
    if (this.#head >= compact_every && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Takes everything out, oldest first. */
  drain(): T[] {
    const all = this.#items.slice(this.#head).filter((item) => item !== undefined);
    this.#items = [];
    this.#head = 0;
    return all;
  }
}
const compact_every = 1024;

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
    return this.#queue(lane).length;
  }

  get full(): boolean {
    return this.#rows >= live_rows_max || this.#bytes >= live_bytes_max;
  }

  /** A message that ends in another way stays in the queue and is skipped. */
  push(live: Live): void {
    this.#queue(live.row.lane).push(live);
    this.#rows += 1;
    this.#bytes += live.row.body.length;
  }

  /** The next of the lanes that go before the backlog. */
  shiftUrgent(): Live | undefined {
    return this.#shiftOf(before_backlog);
  }

  /** The next of the lanes that share the connection with the backlog. */
  shiftTelemetry(): Live | undefined {
    return this.#shiftOf(beside_backlog);
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
    for (const lane of lanes.toReversed()) {
      const queue = this.#queue(lane);
      for (let live = queue.peek(); live; live = queue.peek()) {
        const late = laneRules[lane].durability === 'lazy' && now_ms - live.since_ms > age_ms;
        if (!late && !this.full) break;
        overdue.push(this.#take(queue) ?? live);
      }
    }
    return overdue;
  }

  drain(): Live[] {
    this.#rows = 0;
    this.#bytes = 0;
    return lanes.flatMap((lane) => this.#queue(lane).drain());
  }

  #shiftOf(some: readonly Lane[]): Live | undefined {
    for (const lane of some) {
      const queue = this.#queue(lane);
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

const packet_rows_max = 500;
/** While live telemetry never ends, the backlog still gets every so many-th place. */
const backlog_share = 10;
/** Acknowledged rows whose deletion waits for the disk; while there are so many, the backlog is not read. */
const refs_max = 20_000;

interface SelectionOptions {
  readonly committer: Committer;
  readonly clockOffset: () => ClockOffset;
  readonly live: LiveLanes;
  readonly replay: Replay;
  readonly backlog: Backlog;
  readonly gate: Gate;
  readonly order: RetainedOrder;
  readonly batch: BatchSize;
  readonly returns: Returns;
  readonly moves: LiveMoves;
}

interface Now {
  /** Whether the backlog may be read. */
  readonly backlog: boolean;
}

/** Selects the next message: the most important lanes, then replayed messages, then live telemetry beside the backlog. */
export class Selection {
  /** Live telemetry leaves in packets of this time; 0: every message at once. */
  packet_ms = 0;
  readonly #options: SelectionOptions;
  #turn = 0;

  constructor(options: SelectionOptions) {
    this.#options = options;
  }

  /** Undefined when there is none now. */
  next(now: Now): OutgoingMessage | undefined {
    const { live, order } = this.#options;
    for (;;) {
      const urgent = this.#nextLive(() => live.shiftUrgent());
      const outgoing = urgent ?? this.#nextReplay() ?? this.#nextShared(now);
      if (!outgoing || order.admits(outgoing)) return outgoing;
      this.#supersede(outgoing);
    }
  }

  #nextShared({ backlog }: Now): OutgoingMessage | undefined {
    this.#turn = (this.#turn + 1) % backlog_share;
    const first = backlog && this.#turn === 0 ? this.#nextBacklog() : undefined;
    return first ?? this.#nextTelemetry() ?? (backlog ? this.#nextBacklog() : undefined);
  }

  #nextReplay(): OutgoingMessage | undefined {
    const outgoing = this.#options.replay.shift();
    if (!outgoing || this.#options.gate.allows(outgoing.channel, outgoingId(outgoing), outgoing.retain))
      return outgoing;
    this.#options.replay.requeue(outgoing);
    return undefined;
  }

  #nextTelemetry(): OutgoingMessage | undefined {
    if (this.packet_ms === 0 || this.#options.batch.rows === 1)
      return this.#nextLive(() => this.#options.live.shiftTelemetry());
    const rows_max = Math.min(packet_rows_max, this.#options.batch.rows);
    const lives = this.#options.live.shiftPacket(performance.now(), this.packet_ms, rows_max);
    for (const live of lives) this.#options.moves.moveOne(live, 'handed_out');
    return lives.length > 0 ? outgoingOfPacket(lives, this.#options.clockOffset()) : undefined;
  }

  #nextLive(shift: () => Live | undefined): OutgoingMessage | undefined {
    for (let live = shift(); live; live = shift()) {
      if (this.#options.gate.allows(live.row.channel, live.row.id, isKept(live))) {
        this.#options.moves.moveOne(live, 'handed_out');
        return outgoingOfLive(live, this.#options.clockOffset());
      }
      this.#options.returns.spill([live]);
    }
    return undefined;
  }

  #nextBacklog(): OutgoingMessage | undefined {
    // While the disk refuses, what is delivered cannot be deleted: the memory for that is bounded.
    if (this.#options.committer.refs >= refs_max) return undefined;
    let found: OutgoingMessage | undefined;
    const kept: OutgoingMessage[] = [];
    for (let outgoing = this.#options.backlog.shift(); outgoing; outgoing = this.#options.backlog.shift()) {
      if (this.#options.gate.allows(outgoing.channel, outgoingId(outgoing), outgoing.retain)) {
        found = outgoing;
        break;
      }
      kept.push(outgoing);
    }
    if (kept.length > 0) this.#options.returns.requeue(kept);
    return found;
  }

  /** A newer value of its retained topic was handed out before. */
  #supersede({ content }: OutgoingMessage): void {
    const { committer, moves } = this.#options;
    if (content.kind === 'live') moves.moveOne(content.live, 'superseded');
    if (content.kind !== 'row') return;
    const { id, lane } = content.row;
    committer.add(({ superseded }) => superseded.push({ id, lane }), sync_commit_ms);
  }
}

/** Whether the broker keeps it for later subscribers; a removal is for present ones. */
function isKept({ row: { lane, body } }: Live): boolean {
  return laneRules[lane].retain && body !== 'null';
}
