/** Takes over what the stop of an earlier run could not write: from then on it is among the drops of the buffer file. */
import { rowId } from '../row.ts';
import type { Drop, StoreOptions } from '../protocol.ts';
import { isOtherKit, readMeta, writeMeta } from './schema.ts';
import type { Tables } from './tables/tables.ts';
import { forgetUnwritten, readUnwritten, type Unwritten } from '../unwritten.ts';

/** Epoch of the last note that was taken over. */
const noted_epoch = 'unwritten_epoch';
/** More than memory holds: a longer run was not written by this kit. */
const run_rows_max = 100_000;

/** Runs `enter` in a transaction that also takes over the notes. Those of another kit, and those taken over before, change nothing. */
export function enterWithNotes(
  tables: Tables,
  { runtime_dir, kit_id, clock_synced }: StoreOptions,
  enter: () => void,
): void {
  const notes = readUnwritten(runtime_dir).filter((note) => !isOtherKit(note.kit_id, kit_id));
  tables.db.transaction(() => {
    enter();
    tables.totals.begin(clock_synced !== false);
    takeOver(notes, tables);
  })();
  if (notes.length > 0) forgetUnwritten(runtime_dir);
}

function takeOver(notes: readonly Unwritten[], tables: Tables): void {
  const known = readMeta(tables.db, noted_epoch) ?? 0;
  const fresh = notes.filter(({ epoch }) => epoch > known);
  if (fresh.length === 0) return;
  for (const { epoch, rows, drops, stored } of fresh) {
    for (const drop of drops) tables.drops.add(drop);
    if (!tables.epochs.knows(epoch)) for (const drop of stored) tables.drops.add(drop);
    for (const run of rows) for (const drop of lostOf(run, tables)) tables.drops.add(drop);
  }
  writeMeta(tables.db, noted_epoch, Math.max(...fresh.map(({ epoch }) => epoch)));
}

/** Those of a run that are not in the file: the disk may have finished a commit that nothing waited for any more. */
function* lostOf(run: Drop, { lane, quarantine }: Tables): Generator<Drop> {
  if (run.hi - run.lo + 1 !== run.rows || run.rows > run_rows_max) return;
  const table = lane(run.lane);
  for (let seq = run.lo; seq <= run.hi; seq += 1) {
    const id = rowId({ epoch: run.epoch, seq });
    if (!table.has(id) && !quarantine.find(id)) yield { ...run, rows: 1, lo: seq, hi: seq };
  }
}
