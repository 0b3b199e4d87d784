/** Opens the buffer file again in a process that has used it: what it held is lost when another file, or none, is in its place. */
import { no_depth, type Depth } from '../changes.ts';
import { moveAside } from './damaged-file.ts';
import { lostRows, type Replacement } from './replacement.ts';
import { rowsIn } from './salvage.ts';
import type { Tables } from '../tables/tables.ts';
import { texts } from '../../texts.ts';

interface OfRun {
  readonly file: string;
  /** Those that this process has begun, the newest last. */
  readonly epochs: readonly number[];
  /** What the file held. */
  readonly depth: Depth;
}

export function reopen(
  open: () => Tables,
  { file, epochs, depth }: OfRun,
): { readonly tables: Tables; readonly replacement?: Replacement } {
  const found = open();
  if (epochs.some((epoch) => found.epochs.knows(epoch))) return { tables: found };
  const isNew = found.epochs.last() === undefined;
  if (!isNew) found.db.close();
  const moved_to = isNew ? null : moveAside(file, 'replaced');
  const lost = lostRows(depth, no_depth, epochs.at(-1) ?? 0);
  return {
    tables: isNew ? found : open(),
    replacement: {
      lost,
      salvage: {
        kind: 'replaced',
        cause: texts.file_gone,
        moved_to,
        rows_saved: 0,
        rows_lost: rowsIn(depth),
      },
    },
  };
}
