/** Opens the buffer file of this kit. A file that this release cannot read, or of another kit, is moved aside and replaced by a new one. */
import { moveAside } from './damaged-file.ts';
import type { Found, Salvage, StoreOptions } from '../../protocol.ts';
import { finishReplacement } from './replacement.ts';
import {
  FileTooNew,
  isOtherKit,
  openFile,
  readMeta,
  readMetaText,
  writeMeta,
  type Handle,
} from '../schema.ts';
import type { Tables } from '../tables/tables.ts';
import { texts } from '../../texts.ts';

interface OpenFile {
  readonly db: Handle;
  /** What happened to the file that was there. */
  readonly salvage?: Salvage;
}

/** `epochOfTooNew`: the last epoch of a file that this release cannot read. Throws the errors of SQLite. */
export function openOwn(options: StoreOptions, epochOfTooNew: () => number): OpenFile {
  const { file, limits } = options;
  finishReplacement(file);
  try {
    const db = openFile(file, limits.bytes_max);
    const owner = readMetaText(db, 'kit_id');
    return isOtherKit(owner, options.kit_id) ? replaceOther(db, owner, options) : { db };
  } catch (error) {
    if (!(error instanceof FileTooNew)) throw error;
    const epoch = epochOfTooNew();
    const moved_to = moveAside(file, 'too-new');
    return {
      db: begunAfter(epoch, options),
      salvage: { kind: 'too_new', cause: error.message, moved_to, rows_saved: 0, rows_lost: null },
    };
  }
}

/** The messages of another kit must never leave under our name. */
function replaceOther(db: Handle, owner: string, options: StoreOptions): OpenFile {
  const epoch = readMeta(db, 'epoch') ?? 0;
  db.close();
  const moved_to = moveAside(options.file, 'other-kit');
  const cause = texts.other_kit(owner);
  return {
    db: begunAfter(epoch, options),
    salvage: { kind: 'other_kit', cause, moved_to, rows_saved: 0, rows_lost: null },
  };
}

/** A new file whose epochs continue after `epoch`. */
function begunAfter(epoch: number, { file, limits }: StoreOptions): Handle {
  const db = openFile(file, limits.bytes_max);
  try {
    writeMeta(db, 'epoch', epoch);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** What an earlier run left, beside its messages. */
export function foundIn({ db, drops, journal, announced, totals }: Tables): Found {
  return {
    drops: drops.list(),
    open_tasks: journal.open(),
    announced: announced.list(),
    cloud_acks: readMeta(db, 'cloud_acks') === 1,
    left: totals.read(),
    ended_tasks: journal.ended(),
  };
}
