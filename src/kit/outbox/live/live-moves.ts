/** Carries out what the transitions of messages ask for. */
import { type Lane, laneRules } from '../../../contract/lanes.ts';
import type { RowRef } from '../protocol.ts';
import type { RowId, Row } from '../row.ts';
import type { Backlog } from './backlog.ts';
import { type Committer, lazy_commit_ms, removal_commit_ms, sync_commit_ms } from './committer.ts';
import type { Ledger } from './ledger.ts';
import { type Circumstances, type LiveEffect, type LiveEvent, step } from './live-state.ts';
import type { Live } from './outgoing.ts';
import type { LiveLanes } from './queue.ts';

interface LiveMovesOptions {
  readonly ledger: Ledger;
  readonly committer: Committer;
  readonly live: LiveLanes;
  readonly backlog: () => Backlog;
  readonly isDiskFailing: () => boolean;
  /** The queue takes messages of this channel now. */
  readonly canQueue: (channel: string) => boolean;
  /** A newer value of this retained channel was sent. */
  readonly isOutdated: (channel: string, id: RowId) => boolean;
  /** The PUBACK alone does not release messages of this lane. */
  readonly needsCloud: (lane: Lane) => boolean;
  /** There is something to send. */
  readonly ready: () => void;
}

/** What the caller has to do with several messages at once. */
interface Left {
  /** On disk, for the store to hand out. */
  readonly released: RowRef[];
  readonly given_up: Live[];
}

/** Moves messages from state to state, and does what each transition asks for. */
export class LiveMoves {
  readonly #options: LiveMovesOptions;

  constructor(options: LiveMovesOptions) {
    this.#options = options;
  }

  /** `soon_ms`: when the commit of rows that have to be written begins at the latest. */
  move(lives: Iterable<Live>, event: LiveEvent, soon_ms = lazy_commit_ms): Left {
    const left: Left = { released: [], given_up: [] };
    for (const live of lives) this.moveOne(live, event, soon_ms, left);
    return left;
  }

  moveOne(live: Live, event: LiveEvent, soon_ms = lazy_commit_ms, left?: Left): void {
    const { state, effects } = step(live.state, event, new LiveCircumstances(live, this.#options));
    live.state = state;
    for (const effect of effects) this.#do(effect, live, soon_ms, left);
  }

  /** Notes that the broker, or also the cloud, has a row of the disk. */
  acknowledgedRow({ id, lane }: Row, list: 'delivered' | 'unconfirmed'): void {
    this.#options.committer.add((removals) => removals[list].push({ id, lane }), removal_commit_ms);
  }

  #do(effect: LiveEffect, live: Live, soon_ms: number, left: Left | undefined): void {
    const { committer, ledger, backlog, ready } = this.#options;
    const { row } = live;
    switch (effect) {
      case 'queue':
        this.#options.live.push(live);
        return ready();
      case 'write':
        return committer.write(live, soon_ms);
      case 'release':
        left?.released.push(row);
        return;
      case 'touch':
        return backlog().touched(row.lane);
      case 'deliver':
        return ledger.deliveredFromMemory(1);
      case 'remove':
        return this.acknowledgedRow(row, 'delivered');
      case 'unconfirmed':
        return this.acknowledgedRow(row, 'unconfirmed');
      case 'supersede':
        return committer.add(
          ({ superseded }) => superseded.push({ id: row.id, lane: row.lane }),
          sync_commit_ms,
        );
      case 'give_up':
        left?.given_up.push(live);
        return;
      default:
        effect satisfies never;
    }
  }
}

/** Looked up when a transition asks. */
class LiveCircumstances implements Circumstances {
  readonly #live: Live;
  readonly #options: LiveMovesOptions;

  constructor(live: Live, options: LiveMovesOptions) {
    this.#live = live;
    this.#options = options;
  }

  get is_sync(): boolean {
    return laneRules[this.#live.row.lane].durability === 'sync';
  }

  get is_retained(): boolean {
    return laneRules[this.#live.row.lane].retain;
  }

  get can_queue(): boolean {
    return this.#options.canQueue(this.#live.row.channel);
  }

  get can_skip_disk(): boolean {
    const { row, from_disk_only } = this.#live;
    return !from_disk_only && !(this.is_retained && this.#options.isOutdated(row.channel, row.id));
  }

  get is_disk_failing(): boolean {
    return this.#options.isDiskFailing();
  }

  get needs_cloud(): boolean {
    return this.#options.needsCloud(this.#live.row.lane);
  }
}
