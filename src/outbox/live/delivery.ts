/** Handles a message that the broker acknowledged: removes it, or keeps it until the cloud has confirmed it. */
import { AckRanges } from '../ack-ranges.ts';
import { laneRules, type Lane } from '../../contract/lanes.ts';
import type { AckRule } from '../api.ts';
import type { Committer } from './disk/committer.ts';
import { removal_commit_ms } from './disk/pending.ts';
import type { Stored } from './in-flight.ts';
import type { LiveMoves } from './live-moves.ts';
import { livesOf, type OutgoingMessage } from './outgoing.ts';
import type { Row } from '../row.ts';

interface DeliveryOptions {
  readonly committer: Committer;
  readonly moves: LiveMoves;
  /** The cloud acknowledged these before the PUBACK arrived. */
  readonly confirm: (stored: Stored) => void;
  /** The broker has this message. */
  readonly sent: (row: Row) => void;
}

export class Delivery {
  ack: AckRule = 'auto';
  readonly #options: DeliveryOptions;
  #cloud_acks: boolean;

  /** `cloud_acks`: the cloud sent a `down/ack` in an earlier run. */
  constructor(options: DeliveryOptions, cloud_acks: boolean) {
    this.#options = options;
    this.#cloud_acks = cloud_acks;
  }

  /** The cloud sent a `down/ack` once. */
  get cloud_acks(): boolean {
    return this.#cloud_acks;
  }

  /** The cloud sent a `down/ack` in this run or, as is only known now, in an earlier one. */
  cloudAckReceived(): void {
    this.#cloud_acks = true;
  }

  /** The cloud has stored these rows: waiting for the disk is no longer necessary. */
  confirmed({ epoch, ranges }: Stored): void {
    const { committer, moves } = this.#options;
    const waiting = [...committer.rows_under_way, ...committer.rows];
    if (waiting.length === 0) return;
    const named = new AckRanges(epoch, ranges);
    for (const live of waiting) if (named.has(live.row.id)) moves.moveOne(live, 'confirmed');
  }

  /** The PUBACK arrived. `stored`: what the cloud had acknowledged before. */
  acknowledged(outgoing: OutgoingMessage, stored: readonly Stored[]): void {
    const { committer, moves, confirm, sent } = this.#options;
    const { content } = outgoing;
    const isConfirmed = stored.length > 0;
    for (const live of livesOf(outgoing)) {
      moves.moveOne(live, isConfirmed ? 'acknowledged_last' : 'acknowledged');
      sent(live.row);
    }
    if (content.kind === 'row') {
      const { row } = content;
      moves.acknowledgedRow(row, !isConfirmed && this.needsCloud(row.lane) ? 'unconfirmed' : 'delivered');
      sent(row);
    }
    if (content.kind === 'batch') {
      const { token, lane, rows } = content.batch;
      const list = this.needsCloud(lane) ? 'unconfirmed_batches' : 'delivered_batches';
      committer.add((removals) => removals[list].push({ token, rows }), removal_commit_ms);
      // Only the store can match the rows of a batch with the acknowledged ranges.
      for (const each of stored) confirm(each);
    }
  }

  /** Whose acknowledgement counts as delivery now. */
  get delivered_to(): 'broker' | 'cloud' {
    return this.needsCloud('feed') ? 'cloud' : 'broker';
  }

  /** Whether the cloud, and not the PUBACK alone, releases messages of this lane that are on disk. */
  needsCloud(lane: Lane): boolean {
    if (laneRules[lane].retain) return false;
    return this.ack === 'cloud' || (this.ack === 'auto' && this.#cloud_acks);
  }
}
