/**
 * What the buffer file holds and what left it, as reported to the main thread. An error of COMMIT may come after its work is in the
 * log, which is read when the file is opened again: a number in the file shows whether it was. A commit that was carried out in
 * this way does not count until it is made again: until then the main thread has its rows in memory.
 */
import { Changes, no_depth, perLane, Removals, type Depth } from '../changes.ts';
import type { Removal } from '../../protocol.ts';
import type { Row } from '../../row.ts';

/** A commit of the main thread, which makes it again when it may have been carried out. */
export interface Commit {
  readonly again: boolean;
  /** Called with the new rows when it turns out to have been carried out, before it is made again. */
  readonly found: (rows: readonly Row[]) => void;
}

/** What a transaction that ran to its COMMIT would bring. */
export interface Attempt {
  readonly number: number;
  readonly before: Depth;
  readonly changes: Changes;
  /** Rows that came into the quarantine. */
  readonly quarantined: number;
  /** Undefined: it is not made again. */
  readonly commit: { readonly rows: readonly Row[]; readonly found: () => void } | undefined;
}

export class Accounts {
  /** Removals that were not told yet. */
  readonly #untold = new Removals();
  /** What the file holds. */
  #depth: Depth = no_depth;
  /** Of the last transaction. */
  #number = 0;
  /** Its COMMIT failed, and its handle was given up. */
  #unsure: Attempt | undefined;
  /** A commit that was carried out, and whose rows the main thread takes for unwritten. */
  #found: Attempt | undefined;

  get depth(): Depth {
    if (!this.#found) return this.#depth;
    const { before, changes } = this.#found;
    const after = changes.depth();
    return perLane((lane) => ({
      rows: this.#depth[lane].rows - after[lane].rows + before[lane].rows,
      bytes: this.#depth[lane].bytes - after[lane].bytes + before[lane].bytes,
    }));
  }

  /** `rows`: in the quarantine of the file. */
  quarantined(rows: number): number {
    return rows - (this.#found?.quarantined ?? 0);
  }

  /** Whether a commit may have been carried out without an answer. */
  get isUnsure(): boolean {
    return this.#found !== undefined || this.#unsure?.commit !== undefined;
  }

  takeUntold(): readonly Removal[] {
    return this.#untold.takeAll();
  }

  add(removal: Removal): void {
    this.#untold.add(removal);
  }

  begin(): Pick<Attempt, 'number' | 'before' | 'changes'> {
    this.rolledBack();
    this.#number += 1;
    return { number: this.#number, before: this.#depth, changes: new Changes(this.#depth) };
  }

  done(changes: Changes): void {
    this.#depth = changes.depth();
    this.#tell(changes);
  }

  /** COMMIT failed. */
  failed(attempt: Attempt): void {
    this.#unsure = attempt;
  }

  /** The handle of a failed transaction is still in use: it was rolled back. */
  rolledBack(): void {
    this.#unsure = undefined;
  }

  /** The file was opened. `number`: of the last transaction in it. */
  opened(depth: Depth, number: number): void {
    const attempt = this.#unsure;
    this.#unsure = undefined;
    this.#depth = depth;
    this.#number = Math.max(this.#number, number);
    if (attempt?.number !== number) return;
    if (attempt.commit) this.#found = attempt;
    else this.#tell(attempt.changes);
    attempt.commit?.found();
  }

  /** The commit is made again. Returns its new rows when it was carried out: from now on it counts. */
  takeFound(): readonly Row[] | undefined {
    const found = this.#found;
    this.#found = undefined;
    if (found) this.#tell(found.changes);
    return found?.commit?.rows;
  }

  #tell(changes: Changes): void {
    for (const removal of changes.removals()) this.#untold.add(removal);
  }
}
