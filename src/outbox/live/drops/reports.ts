/**
 * Reports of messages that were given up. What was dropped is counted on disk by epoch, lane and reason; one report is under way
 * at a time and takes all that was counted until then, so that an hour without a link adds one report at most.
 */
import { drops_max } from '../../../contract/drops.ts';
import type { Position } from '../../../contract/envelope.ts';
import { channels } from '../../../contract/topics.ts';
import type { Draft } from '../../api.ts';
import type { Committer } from '../disk/committer.ts';
import type { Ledger } from '../../ledger.ts';
import { rowId, type Row, type RowId } from '../../row.ts';

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
