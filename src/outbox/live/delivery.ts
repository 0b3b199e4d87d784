/** Handles a message that the broker acknowledged: removes it, or keeps it until the cloud has confirmed it. */
import { laneRules, type Lane } from '../../contract/lanes.ts';
import type { AckRule } from '../api.ts';
import type { Committer } from './disk/committer.ts';
import type { Stored } from './in-flight.ts';
import type { Ledger } from '../ledger.ts';
import { isRetained, livesOf, type Live, type OutgoingMessage } from './outgoing.ts';
import type { Row } from '../row.ts';

/** Group commit of what must not be lost. */
export const sync_commit_ms = 20;
/** Group commit of deletions: what is not deleted yet is sent twice after a kill. A commit costs more than its rows. */
const removal_commit_ms = 100;

interface DeliveryOptions {
  readonly ledger: Ledger;
  readonly committer: Committer;
  /** The cloud acknowledged these before the PUBACK arrived. */
  readonly confirm: (stored: Stored) => void;
  /** The broker has this message. */
  readonly sent: (row: Row) => void;
}

export class Delivery {
  ack: AckRule = 'auto';
  /** The cloud sent a `down/ack` once. */
  cloud_acks: boolean;
  readonly #options: DeliveryOptions;

  constructor(options: DeliveryOptions, cloud_acks: boolean) {
    this.#options = options;
    this.cloud_acks = cloud_acks;
  }

  /** The PUBACK arrived. `stored`: what the cloud had acknowledged before. */
  acknowledged(outgoing: OutgoingMessage, stored: readonly Stored[]): void {
    const { content } = outgoing;
    const isConfirmed = stored.length > 0;
    for (const live of livesOf(outgoing)) this.#live(live, isConfirmed);
    if (content.kind === 'row') {
      this.row(content.row, isConfirmed);
      this.#options.sent(content.row);
    }
    if (content.kind === 'batch') {
      const { token, lane } = content.batch;
      const list = this.#needsCloud(lane) ? 'unconfirmed_batches' : 'delivered_batches';
      this.#options.committer.add((removals) => removals[list].push(token), removal_commit_ms);
      // Only the store can match the rows of a batch with the acknowledged ranges.
      for (const each of stored) this.#options.confirm(each);
    }
  }

  /** A row on disk was acknowledged. */
  row({ id, lane }: Row, isConfirmed: boolean): void {
    const list = !isConfirmed && this.#needsCloud(lane) ? 'unconfirmed' : 'delivered';
    this.#options.committer.add((removals) => removals[list].push({ id, lane }), removal_commit_ms);
  }

  /** A message that is being written is removed after its commit. */
  #live(live: Live, isConfirmed: boolean): void {
    live.acked = true;
    live.confirmed = isConfirmed;
    if (live.disk === 'yes') this.row(live.row, isConfirmed);
    else if (live.disk === 'no' || (live.disk === 'due' && !isRetained(live)))
      this.#options.ledger.deliveredFromMemory(1);
    this.#options.sent(live.row);
  }

  #needsCloud(lane: Lane): boolean {
    const { durability, retain } = laneRules[lane];
    if (durability === 'lazy' || retain) return false;
    return this.ack === 'cloud' || (this.ack === 'auto' && this.cloud_acks);
  }
}
