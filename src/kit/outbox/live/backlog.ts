/** Reads the buffer back, most important lane first, a little ahead of what the uplink can send. */
import { type Lane, lanes } from '../../../contract/lanes.ts';
import { Fifo } from './fifo.ts';
import { type OutgoingMessage, outgoingOfBatch, outgoingOfRow } from './outgoing.ts';
import type { StoreClient } from './store-client.ts';
import type { Taken, TakenBatch, TakenRow, TakeRequest } from '../protocol.ts';

/** What is read ahead: so many single rows, or batches that stand for `batch_weight` each. */
const ahead_max = 512;
const batch_weight = 64;
const page_rows = 256;
const rest_ms = 1_000;
const alarms_few = 8;
const page_bytes = 128 * 1024;
/**
 * Requests under way for a lane that has more: one batch is compressed while the thread packs the next, and a third waits for it
 * to be done.
 */
const reads_max = 3;

export interface BacklogForm {
  /** Rows in one batch; 1 sends each row as a separate message. */
  batch_rows: number;
  batch_bytes: number;
}

interface BacklogOptions {
  readonly client: Pick<StoreClient, 'take'>;
  readonly form: BacklogForm;
  /** Alarms on disk: a handful is still news, more are history. */
  readonly alarms: () => number;
  readonly ready: () => void;
  readonly failed: (error: unknown) => void;
  /** The connection was lost while they were read: releases them to the store. */
  readonly requeue: (messages: readonly OutgoingMessage[]) => void;
}

export class Backlog {
  readonly #options: BacklogOptions;
  readonly #ahead = new Fifo<TakenRow | TakenBatch>();
  /** Lanes that may have rows, each with the number of its latest touch. */
  readonly #waiting = new Map<Lane, number>();
  readonly #resting = new Map<Lane, number>();
  #touches = 0;
  #weight = 0;
  /** Requests under way, and what they may add to the weight. */
  #reads = 0;
  #asked_weight = 0;
  /** The lane that had more rows than its last request took. */
  #flowing: Lane | undefined;
  #generation = 0;
  #open = false;

  constructor(options: BacklogOptions) {
    this.#options = options;
  }

  /** The connection is up: everything that is on disk may be sent. */
  open(): void {
    this.#open = true;
    for (const lane of lanes) this.#wait(lane);
    this.#fill();
  }

  /** The connection is gone. Returns what was read ahead, which must be released to the store. */
  close(): readonly OutgoingMessage[] {
    this.#open = false;
    this.#generation += 1;
    this.#weight = 0;
    this.#flowing = undefined;
    this.#waiting.clear();
    this.#resting.clear();
    return this.#ahead.drain().map(outgoingOf);
  }

  /** Rows of this lane were written or released. */
  touched(lane: Lane): void {
    if (!this.#open) return;
    this.#wait(lane);
    this.#fill();
  }

  /** Pauses a lane whose rows were released because they could not be sent now. */
  rest(lane: Lane): void {
    if (this.#open) this.#resting.set(lane, performance.now() + rest_ms);
  }

  /** Resumes lanes whose pause is over. */
  wake(): void {
    for (const [lane, until_ms] of this.#resting) {
      if (performance.now() < until_ms) continue;
      this.#resting.delete(lane);
      this.touched(lane);
    }
  }

  shift(): OutgoingMessage | undefined {
    const taken = this.#ahead.shift();
    if (!taken) return undefined;
    this.#weight -= weightOf(taken);
    // The thread may be in a commit just now: request early, long before the last row is sent.
    if (this.#weight <= ahead_max / 2) this.#fill();
    return outgoingOf(taken);
  }

  #wait(lane: Lane): void {
    this.#touches += 1;
    this.#waiting.set(lane, this.#touches);
  }

  #fill(): void {
    while (this.#open && this.#reads < reads_max) {
      const lane = this.#nextLane();
      if (!lane || (this.#reads > 0 && lane !== this.#flowing)) return;
      void this.#read(lane);
    }
  }

  /** Reads the next rows of a lane. */
  async #read(lane: Lane): Promise<void> {
    const generation = this.#generation;
    const touch = this.#waiting.get(lane);
    const request = this.#requestOf(lane);
    const weight = request.form === 'batch' ? batch_weight : request.rows_max;
    this.#reads += 1;
    this.#asked_weight += weight;
    try {
      const taken = await this.#options.client.take(request);
      if (generation === this.#generation) this.#keep(lane, touch, taken);
      else this.#options.requeue([...taken.rows, ...batchOf(taken)].map(outgoingOf));
    } catch (error) {
      this.#options.failed(error);
      if (generation === this.#generation) this.rest(lane);
    } finally {
      this.#reads -= 1;
      this.#asked_weight -= weight;
    }
    this.#fill();
  }

  #nextLane(): Lane | undefined {
    if (this.#weight + this.#asked_weight >= ahead_max) return undefined;
    return lanes.find((lane) => this.#waiting.has(lane) && !this.#resting.has(lane));
  }

  #keep(lane: Lane, touch: number | undefined, taken: Taken): void {
    this.#flowing = taken.drained ? undefined : lane;
    if (taken.drained && this.#waiting.get(lane) === touch) this.#waiting.delete(lane);
    for (const each of [...taken.rows, ...batchOf(taken)]) {
      this.#ahead.push(each);
      this.#weight += weightOf(each);
    }
    if (taken.rows.length > 0 || taken.batch) this.#options.ready();
  }

  /** In a batch history is marked as such. A task's report is never history, and a retained topic stands for itself. */
  #requestOf(lane: Lane): TakeRequest {
    const { form, alarms } = this.#options;
    const news = lane === 'task' || lane === 'presence' || (lane === 'alarm' && alarms() < alarms_few);
    const singly = news || form.batch_rows <= 1;
    return singly
      ? { lane, form: 'rows', rows_max: page_rows, bytes_max: page_bytes }
      : { lane, form: 'batch', rows_max: form.batch_rows, bytes_max: form.batch_bytes };
  }
}

function batchOf({ batch }: Taken): readonly TakenBatch[] {
  return batch ? [batch] : [];
}

/** Built only when it is sent: memory holds only the row. */
function outgoingOf(taken: TakenRow | TakenBatch): OutgoingMessage {
  return 'token' in taken ? outgoingOfBatch(taken) : outgoingOfRow(taken);
}

function weightOf(taken: TakenRow | TakenBatch): number {
  return 'token' in taken ? batch_weight : 1;
}

/** Batches of the backlog that are accepted before larger ones are tried again. */
const larger_after = 64;

/** Batches of fewer rows may still have so many bytes: large rows are not sent one by one. */
const bytes_few = 64 * 1024;
/** Until the link is measured: on a narrow one the first batches would keep live messages waiting. */
const rows_at_first = 200;

/** How many rows one batch takes: as many as suit the link, fewer after the broker refused a large one. */
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
