/** How many rows one batch takes: as many as suit the link, fewer after the broker refused a large one. */
import type { BacklogForm } from './backlog.ts';

/** Batches of the backlog that are accepted before larger ones are tried again. */
const larger_after = 64;

/** Batches of fewer rows may still have so many bytes: large rows are not sent one by one. */
const bytes_few = 64 * 1024;
/** Until the link is measured: on a narrow one the first batches would keep live messages waiting. */
const rows_at_first = 200;

export class BatchSize {
  readonly #form: BacklogForm;
  readonly #row_bytes: number;
  readonly #top: number;
  #max: number;
  #accepted = 0;

  /** `form` is what the readers of the backlog use. */
  constructor(form: BacklogForm) {
    this.#form = form;
    this.#row_bytes = form.batch_bytes / form.batch_rows;
    this.#top = form.batch_rows;
    this.#max = form.batch_rows;
    this.set(rows_at_first);
  }

  get rows(): number {
    return this.#form.batch_rows;
  }

  /** How many rows suit the link. */
  set(rows: number): void {
    this.#form.batch_rows = Math.min(rows, this.#max);
    this.#form.batch_bytes = Math.max(bytes_few, this.#form.batch_rows * this.#row_bytes);
  }

  /** A batch of so many rows was refused. */
  shrink(rows: number): void {
    this.#max = Math.max(1, Math.floor(Math.min(this.#form.batch_rows, rows) / 2));
    this.#form.batch_rows = this.#max;
    this.#accepted = 0;
  }

  /** One message that was too large has made all batches small: they grow again. */
  accepted(): void {
    if (this.#max >= this.#top) return;
    this.#accepted += 1;
    if (this.#accepted < larger_after) return;
    this.#accepted = 0;
    this.#max = Math.min(this.#max * 2, this.#top);
    this.#form.batch_rows = this.#max;
  }
}
