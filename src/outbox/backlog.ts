/** Reads the buffer back, most important lane first, a little ahead of what the uplink can send. */
import { lanes, type Lane } from '../contract/lanes.ts';
import { Fifo } from './fifo.ts';
import { batchParcel, rowParcel, type Parcel } from './parcel.ts';
import type { StoreClient } from './store-client.ts';
import type { Taken } from './protocol.ts';

/** What is read ahead: so many single rows, or batches that stand for `batch_weight` each. */
const ahead_max = 512;
const batch_weight = 64;
const page_rows = 256;
const rest_ms = 1_000;
const alarms_few = 8;
const page_bytes = 128 * 1024;

export interface BacklogForm {
  /** Rows in one batch; 1 sends every row as a message of its own. */
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
}

export class Backlog {
  readonly #options: BacklogOptions;
  readonly #ahead = new Fifo<Parcel>();
  readonly #waiting = new Set<Lane>();
  readonly #resting = new Map<Lane, number>();
  #weight = 0;
  #generation = 0;
  #reading = false;
  #open = false;

  constructor(options: BacklogOptions) {
    this.#options = options;
  }

  /** The connection is up: everything that is on disk may be sent. */
  open(): void {
    this.#open = true;
    for (const lane of lanes) this.#waiting.add(lane);
    void this.#fill();
  }

  /** The connection is gone: what was read ahead is forgotten, the store has it. */
  close(): void {
    this.#open = false;
    this.#generation += 1;
    this.#ahead.drain();
    this.#weight = 0;
    this.#waiting.clear();
    this.#resting.clear();
  }

  /** Rows of this lane were written or given back. */
  touched(lane: Lane): void {
    if (!this.#open) return;
    this.#waiting.add(lane);
    void this.#fill();
  }

  /** Rows of this lane were given back because they could not be sent now: it is left alone for a moment. */
  rest(lane: Lane): void {
    this.#resting.set(lane, performance.now() + rest_ms);
  }

  /** Looks for lanes whose rest is over. */
  wake(): void {
    for (const [lane, until_ms] of this.#resting) {
      if (performance.now() < until_ms) continue;
      this.#resting.delete(lane);
      this.touched(lane);
    }
  }

  shift(): Parcel | undefined {
    const parcel = this.#ahead.shift();
    if (!parcel) return undefined;
    this.#weight -= weightOf(parcel);
    // The thread may be in a commit just now: it is asked long before the last one is gone.
    if (this.#weight <= ahead_max / 2) void this.#fill();
    return parcel;
  }

  async #fill(): Promise<void> {
    if (this.#reading || !this.#open) return;
    this.#reading = true;
    const generation = this.#generation;
    try {
      for (let lane = this.#nextLane(); lane; lane = this.#nextLane()) {
        this.#waiting.delete(lane);
        const taken = await this.#take(lane);
        if (generation !== this.#generation) break;
        this.#keep(lane, taken);
      }
    } catch (error) {
      this.#options.failed(error);
    } finally {
      this.#reading = false;
      if (generation !== this.#generation) void this.#fill();
    }
  }

  #nextLane(): Lane | undefined {
    if (this.#weight >= ahead_max) return undefined;
    return lanes.find((lane) => this.#waiting.has(lane) && !this.#resting.has(lane));
  }

  #keep(lane: Lane, taken: Taken): void {
    if (!taken.drained) this.#waiting.add(lane);
    for (const row of taken.rows) this.#push(rowParcel(row));
    if (taken.batch) this.#push(batchParcel(taken.batch));
    if (taken.rows.length > 0 || taken.batch) this.#options.ready();
  }

  #push(parcel: Parcel): void {
    this.#ahead.push(parcel);
    this.#weight += weightOf(parcel);
  }

  /** In a batch history is marked as such. A task's report is never history, and a retained topic stands for itself. */
  async #take(lane: Lane): Promise<Taken> {
    const { form, client, alarms } = this.#options;
    const news = lane === 'task' || lane === 'presence' || (lane === 'alarm' && alarms() < alarms_few);
    const singly = news || form.batch_rows <= 1;
    return client.take(
      singly
        ? { lane, form: 'rows', rows_max: page_rows, bytes_max: page_bytes }
        : { lane, form: 'batch', rows_max: form.batch_rows, bytes_max: form.batch_bytes },
    );
  }
}

function weightOf({ content }: Parcel): number {
  return content.kind === 'batch' ? batch_weight : 1;
}
