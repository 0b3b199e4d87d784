/** The choice of the next message to send. */
import { laneRules, lanes } from '../../../contract/lanes.ts';
import type { Backlog, BatchSize } from './backlog.ts';
import { type Committer, sync_commit_ms } from './committer.ts';
import type { Replay, Returns } from './delivery.ts';
import type { Gate } from './gate.ts';
import type { LiveMoves } from './live-moves.ts';
import {
  type ClockOffset,
  type Live,
  outgoingId,
  type OutgoingMessage,
  outgoingOfLive,
  outgoingOfPacket,
} from './outgoing.ts';
import type { LiveLanes, RetainedOrder } from './queue.ts';

const packet_rows_max = 500;
/** While live telemetry never ends, the backlog still gets every so many-th place. */
const backlog_share = 10;
/** Acknowledged rows whose deletion waits for the disk; while there are so many, the backlog is not read. */
const refs_max = 20_000;

const sync_lanes = lanes.filter((lane) => laneRules[lane].durability === 'sync');

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
    return (
      first ?? this.#nextTelemetry() ?? (backlog ? (this.#nextBehind() ?? this.#nextBacklog()) : undefined)
    );
  }

  /** While a message that is on disk first waits for the disk, what may belong to it waits too. */
  #nextBehind(): OutgoingMessage | undefined {
    const { committer, live } = this.#options;
    const isOvertaking = sync_lanes.some((lane) => committer.writes(lane));
    return isOvertaking ? undefined : this.#nextLive(() => live.shiftBehind());
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
