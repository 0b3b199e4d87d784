/** Messages that were given up: reports for the cloud, and episodes for the log. */
import type { Lane } from '../../../contract/lanes.ts';
import type { Draft, OutboxLog } from '../api.ts';
import type { DropReason } from '../protocol.ts';
import { texts } from '../texts.ts';
import { drops_max } from '../../../contract/drops.ts';
import type { Position } from '../../../contract/envelope.ts';
import { channels } from '../../../contract/topics.ts';
import type { Committer } from './committer.ts';
import type { DiskState } from './disk-health.ts';
import type { Ledger } from './ledger.ts';
import { type Row, rowId, type RowId } from '../row.ts';

/** Why there is no room: limits of the configuration, the disk, the age of messages, or the memory for what is not written yet. */
type DropCause = 'limit' | 'disk' | 'age' | 'memory';

/** An episode that is not over. */
export interface Dropping {
  readonly cause: DropCause;
  readonly lanes: readonly Lane[];
}

/** Without a drop for so long an episode is over: the buffer makes a little room at a time. */
export const quiet_ms = 60_000;

interface Episode {
  readonly began_ms: number;
  last_ms: number;
  readonly by_reason: Map<DropReason, number>;
  readonly by_lane: Map<Lane, number>;
}

interface DropEpisodesOptions {
  readonly now: () => number;
  readonly disk: Pick<DiskState, 'health'>;
  readonly log: Pick<OutboxLog, 'warn'>;
}

/** Episodes in which the buffer drops messages for want of room: each is logged when it begins, and with its figures when it ends. */
export class DropEpisodes {
  readonly #options: DropEpisodesOptions;
  readonly #episodes = new Map<DropCause, Episode>();

  constructor(options: DropEpisodesOptions) {
    this.#options = options;
  }

  get current(): readonly Dropping[] {
    return Array.from(this.#episodes, ([cause, { by_lane }]) => ({ cause, lanes: [...by_lane.keys()] }));
  }

  dropped(lane: Lane, reason: DropReason, rows: number): void {
    const cause = this.#causeOf(reason);
    if (cause === undefined) return;
    const now_ms = this.#options.now();
    const known = this.#episodes.get(cause);
    if (!known) this.#options.log.warn({ lane, reason }, texts.dropping[cause]);
    const episode: Episode = known ?? {
      began_ms: now_ms,
      last_ms: now_ms,
      by_reason: new Map(),
      by_lane: new Map(),
    };
    episode.last_ms = now_ms;
    episode.by_reason.set(reason, (episode.by_reason.get(reason) ?? 0) + rows);
    episode.by_lane.set(lane, (episode.by_lane.get(lane) ?? 0) + rows);
    this.#episodes.set(cause, episode);
  }

  /** Ends what has been quiet for long. */
  tick(): void {
    this.#end(({ last_ms }) => this.#options.now() - last_ms >= quiet_ms);
  }

  /** The process stops. */
  close(): void {
    this.#end(() => true);
  }

  #end(isOver: (episode: Episode) => boolean): void {
    for (const [cause, episode] of this.#episodes) {
      if (!isOver(episode)) continue;
      this.#episodes.delete(cause);
      const { began_ms, last_ms, by_reason, by_lane } = episode;
      const messages = [...by_reason.values()].reduce((sum, rows) => sum + rows, 0);
      const figures = { ...Object.fromEntries(by_reason), lanes: Object.fromEntries(by_lane) };
      const took_s = Math.round((last_ms - began_ms) / 1_000);
      this.#options.log.warn({ messages, ...figures, took_s }, texts.dropped[cause]);
    }
  }

  /** Undefined: not for want of room, or reported in another way. */
  #causeOf(reason: DropReason): DropCause | undefined {
    // Other programs may have filled the disk.
    if (reason === 'evicted') return this.#options.disk.health.state === 'full' ? 'disk' : 'limit';
    return causes[reason];
  }
}

const causes: Partial<Record<DropReason, DropCause>> = {
  thinned: 'limit',
  expired: 'age',
  memory_full: 'memory',
};

/** A report that the broker has not acknowledged by then counts as lost: quarantined, or given up. */
const patience_ms = 3_600_000;
/** Without a connection, reports are for the local parts only. */
const offline_every_ms = 3_600_000;

interface DropReportsOptions {
  readonly ledger: Ledger;
  readonly committer: Committer;
  readonly append: (draft: Draft) => Position;
  readonly isConnected: () => boolean;
  readonly now: () => number;
}

/**
 * Reports of messages that were given up. What was dropped is counted on disk by epoch, lane and reason; one report is under way
 * at a time and takes all that was counted until then, so that an hour without a link adds one report at most.
 */
export class DropReports {
  readonly #options: DropReportsOptions;
  #under_way: RowId | undefined;
  #last_ms: number;

  constructor(options: DropReportsOptions) {
    this.#options = options;
    this.#last_ms = options.now();
  }

  /** The broker has this message. */
  sent({ id, channel }: Row): void {
    if (channel === channels.drops && id === this.#under_way) this.#under_way = undefined;
  }

  /** A hole in the sequence must never look like a loss on the way, so drops are messages that are never dropped themselves. */
  tick(): void {
    const { ledger, committer, append, isConnected, now } = this.#options;
    const passed_ms = now() - this.#last_ms;
    if (this.#under_way !== undefined && passed_ms < patience_ms) return;
    if (!isConnected() && passed_ms < offline_every_ms) return;
    const drops = ledger.takeUnreported(drops_max);
    if (drops.length === 0) return;
    this.#last_ms = now();
    const position = append({
      lane: 'task',
      channel: channels.drops,
      data: { drops: drops.map((drop) => ({ ...drop })) },
    });
    this.#under_way = rowId(position);
    committer.reported(drops);
  }
}
