/** Limits the memory of messages that are not on disk: drops the oldest of the least important lanes beyond it. */
import { lanes } from '../../../contract/lanes.ts';
import type { Committer } from './committer.ts';
import type { Dispatch } from './dispatch.ts';
import type { DiskState } from './disk-health.ts';
import type { Ledger } from './ledger.ts';
import { isAcknowledged } from './live-state.ts';
import { isRetained, type Live } from './outgoing.ts';
import type { RowId } from '../row.ts';

/** Rows that are not on disk while it refuses them, or does not answer. */
export const memory_rows_max = 10_000;
/** The same while it answers: it may be slower than the messages come, or a burst may come in one turn of the loop. */
export const memory_rows_burst_max = 32_768;
/** Characters of bodies. */
const memory_chars_max = 32 * 1024 * 1024;
/** What may be accepted before the limits are applied again; a sweep of the outbox may be far off. */
export const unchecked_rows_max = 1_024;
const unchecked_chars_max = 4 * 1024 * 1024;

interface MemoryParts {
  readonly ledger: Ledger;
  readonly committer: Committer;
  readonly dispatch: Dispatch;
  readonly disk: DiskState;
}

export class MemoryLimit {
  readonly #parts: MemoryParts;
  #unchecked_rows = 0;
  #unchecked_chars = 0;

  constructor(parts: MemoryParts) {
    this.#parts = parts;
  }

  /** A message was accepted into memory. */
  accepted({ row }: Live): void {
    this.#unchecked_rows += 1;
    this.#unchecked_chars += row.body.length;
    if (this.#unchecked_rows >= unchecked_rows_max || this.#unchecked_chars >= unchecked_chars_max)
      this.apply();
  }

  apply(): void {
    this.#unchecked_rows = 0;
    this.#unchecked_chars = 0;
    keepWithinLimits(this.#parts);
  }
}

function keepWithinLimits(parts: MemoryParts): void {
  const { ledger, committer, dispatch, disk } = parts;
  const rows_max = disk.isFailing ? memory_rows_max : memory_rows_burst_max;
  if (disk.isFailing) forgetReplaced(parts);
  if (ledger.memory_rows > rows_max) forgetAcknowledged(parts);
  let chars_over = dispatch.live_chars - memory_chars_max;
  for (const live of committer.rows) chars_over += live.row.body.length;
  let rows_over = ledger.memory_rows - rows_max;
  for (const lane of lanes.toReversed()) {
    if (rows_over <= 0 && chars_over <= 0) return;
    const given_up = committer.forget((live) => {
      if (live.row.lane !== lane || !isExpendable(live) || (rows_over <= 0 && chars_over <= 0)) return false;
      rows_over -= 1;
      chars_over -= live.row.body.length;
      return true;
    });
    for (const { row } of given_up) ledger.droppedFromMemory('memory_full', row);
  }
}

function isExpendable(live: Live): boolean {
  return live.state.place === 'nowhere' && !live.from_disk_only;
}

/** Retained values that the broker has are written only to replace older ones on disk: the newest of each channel does that. */
function forgetReplaced({ committer, ledger }: MemoryParts): void {
  const newest = new Map<string, RowId>();
  for (const live of committer.rows) if (isRetained(live)) newest.set(live.row.channel, live.row.id);
  const replaced = committer.forget(
    (live) =>
      isAcknowledged(live.state) && isRetained(live) && live.row.id < (newest.get(live.row.channel) ?? 0),
  );
  ledger.deliveredFromMemory(replaced.length);
}

/** Kept for the cloud's acknowledgement, which the broker's has to stand in for when memory is short. */
function forgetAcknowledged({ committer, ledger }: MemoryParts): void {
  const known = committer.forget(
    (live) => live.state.disk === 'due' && isAcknowledged(live.state) && !isRetained(live),
  );
  ledger.deliveredFromMemory(known.length);
}
