/** What becomes of messages: moves them from state to state, and carries out what each transition asks for. */
import { type Lane, laneRules } from '../../../contract/lanes.ts';
import { AckRanges } from '../ack-ranges.ts';
import type { AckRule } from '../api.ts';
import type { RowRef, Stored } from '../protocol.ts';
import type { Row } from '../row.ts';
import type { Backlog } from './backlog.ts';
import type { CloudAcks } from './cloud-acks.ts';
import { type Committer, lazy_commit_ms, removal_commit_ms, sync_commit_ms } from './committer.ts';
import type { Replay } from './delivery.ts';
import type { DiskState } from './disk-health.ts';
import type { Ledger } from './ledger.ts';
import { type Circumstances, type LiveEffect, type LiveEvent, step } from './live-state.ts';
import { type Live, livesOf, type OutgoingMessage } from './outgoing.ts';
import type { LiveLanes, RetainedOrder } from './queue.ts';
import type { StoreClient } from './store-client.ts';

interface MovesParts {
  readonly client: Pick<StoreClient, 'release'>;
  readonly ledger: Ledger;
  readonly committer: Committer;
  readonly disk: DiskState;
  readonly live: LiveLanes;
  readonly backlog: Backlog;
  readonly replay: Replay;
  readonly order: RetainedOrder;
  readonly cloud_acks: CloudAcks;
  readonly diskFailed: (error: unknown) => void;
  /** The queue takes messages of this channel now. */
  readonly canQueue: (channel: string) => boolean;
  /** The broker has this message. */
  readonly sent: (row: Row) => void;
  /** There is something to send. */
  readonly ready: () => void;
}

export class Moves {
  ack: AckRule = 'auto';
  /** The cloud sent a `down/ack` once, in this run or an earlier one. */
  cloud_acks: boolean;
  readonly #parts: MovesParts;

  constructor(parts: MovesParts, cloud_acks: boolean) {
    this.#parts = parts;
    this.cloud_acks = cloud_acks;
  }

  /** `soon_ms`: when the commit of rows that have to be written begins at the latest. */
  move(lives: Iterable<Live>, event: LiveEvent, soon_ms = lazy_commit_ms): void {
    this.#release(this.#moved(lives, event, soon_ms));
  }

  /** Takes messages that did not reach the broker, to send them again; `rest: false`: without a pause of their lanes. */
  requeue(messages: readonly OutgoingMessage[], { rest = true } = {}): void {
    const rows: RowRef[] = [];
    const batches: { readonly token: number; readonly lane: Lane }[] = [];
    for (const outgoing of messages) {
      const { content } = outgoing;
      if (content.kind === 'replay') this.#parts.replay.requeue(outgoing);
      if (content.kind === 'row') rows.push(content.row);
      if (content.kind === 'batch') batches.push(content.batch);
    }
    rows.push(...this.#moved(messages.flatMap(livesOf), 'taken_back', lazy_commit_ms));
    this.#release(rows, batches, rest);
  }

  /** A newer value of its retained topic was handed out before. */
  supersede({ content }: OutgoingMessage): void {
    if (content.kind === 'live') this.move([content.live], 'superseded');
    if (content.kind === 'row') this.#settle(content.row, 'superseded');
  }

  /** The PUBACK arrived. `stored`: what the cloud had acknowledged before. */
  acknowledged(outgoing: OutgoingMessage, stored: readonly Stored[]): void {
    const { committer, cloud_acks, sent } = this.#parts;
    const { content } = outgoing;
    const isConfirmed = stored.length > 0;
    for (const live of livesOf(outgoing)) {
      this.move([live], isConfirmed ? 'acknowledged_last' : 'acknowledged');
      sent(live.row);
    }
    if (content.kind === 'row') {
      const { row } = content;
      this.#settle(row, !isConfirmed && this.needsCloud(row.lane) ? 'unconfirmed' : 'delivered');
      sent(row);
    }
    if (content.kind === 'batch') {
      const { token, lane, rows } = content.batch;
      const outcome = this.needsCloud(lane) ? 'unconfirmed' : 'delivered';
      committer.settle({ outcome, token, rows }, removal_commit_ms);
      // Only the store can match the rows of a batch with the acknowledged ranges.
      for (const each of stored) cloud_acks.add(each);
    }
  }

  /** The cloud has stored these rows: waiting for the disk is no longer necessary. */
  confirmed({ epoch, ranges }: Stored): void {
    const { unwritten } = this.#parts.committer;
    if (unwritten.length === 0) return;
    const named = new AckRanges(epoch, ranges);
    this.move(
      unwritten.filter(({ row }) => named.has(row.id)),
      'confirmed',
    );
  }

  /** Whose acknowledgement counts as delivery now. */
  get delivered_to(): 'broker' | 'cloud' {
    return this.needsCloud('feed') ? 'cloud' : 'broker';
  }

  /** Whether the cloud, and not the PUBACK alone, releases messages of this lane that are on disk. */
  needsCloud(lane: Lane): boolean {
    if (laneRules[lane].retain) return false;
    return this.ack === 'cloud' || (this.ack === 'auto' && this.cloud_acks);
  }

  /** Returns what is on disk, for the store to hand out. */
  #moved(lives: Iterable<Live>, event: LiveEvent, soon_ms: number): readonly Row[] {
    const released: Row[] = [];
    for (const live of lives) {
      const { state, effects } = step(live.state, event, this.#about(live));
      live.state = state;
      for (const effect of effects) {
        if (effect === 'release') released.push(live.row);
        else this.#do(effect, live, soon_ms);
      }
    }
    return released;
  }

  #about({ row: { id, lane, channel }, from_disk_only }: Live): Circumstances {
    const { canQueue, disk, order } = this.#parts;
    const { durability, retain } = laneRules[lane];
    return {
      is_sync: durability === 'sync',
      is_retained: retain,
      can_queue: canQueue(channel),
      can_skip_disk: !from_disk_only && !(retain && order.isOutdated(channel, id)),
      is_disk_failing: disk.isFailing,
      needs_cloud: this.needsCloud(lane),
    };
  }

  #do(effect: Exclude<LiveEffect, 'release'>, live: Live, soon_ms: number): void {
    const { committer, ledger, backlog, ready } = this.#parts;
    const { row } = live;
    switch (effect) {
      case 'queue':
        this.#parts.live.push(live);
        return ready();
      case 'write':
        return committer.write(live, soon_ms);
      case 'touch':
        return backlog.touched(row.lane);
      case 'deliver':
        return ledger.deliveredFromMemory(1);
      case 'remove':
        return this.#settle(row, 'delivered');
      case 'unconfirmed':
        return this.#settle(row, 'unconfirmed');
      case 'supersede':
        return this.#settle(row, 'superseded');
      case 'give_up':
        return ledger.droppedFromMemory('memory_full', row);
      default:
        effect satisfies never;
    }
  }

  /** Notes what became of a row on disk. */
  #settle({ id, lane }: RowRef, outcome: 'delivered' | 'unconfirmed' | 'superseded'): void {
    const soon_ms = outcome === 'superseded' ? sync_commit_ms : removal_commit_ms;
    this.#parts.committer.settle({ outcome, id, lane }, soon_ms);
  }

  /** The store may hand these out again; `rest`: after a moment. */
  #release(
    rows: readonly RowRef[],
    batches: readonly { readonly token: number; readonly lane: Lane }[] = [],
    rest = true,
  ): void {
    if (rows.length === 0 && batches.length === 0) return;
    const { client, backlog, diskFailed } = this.#parts;
    const refs = rows.map(({ id, lane }) => ({ id, lane }));
    client.release({ rows: refs, batches: batches.map(({ token }) => token) }).catch(diskFailed);
    if (rest) for (const { lane } of [...rows, ...batches]) backlog.rest(lane);
  }
}
