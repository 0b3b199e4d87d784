/**
 * The outbox: takes messages, keeps them safe by the rule of their lane, and keeps the books. What the uplink asks of it
 * is in `dispatch`.
 */
import type { Position } from '../contract/envelope.ts';
import { lanes, type Lane } from '../contract/lanes.ts';
import { drops_max } from '../contract/drops.ts';
import { channels } from '../contract/topics.ts';
import { messageOf } from '../errors.ts';
import type { Clock } from '../platform/clock.ts';
import { every } from '../platform/time.ts';
import type { Appender, Draft, Journal } from './api.ts';
import type { BacklogForm } from './backlog.ts';
import { Committer } from './committer.ts';
import { Dispatch } from './dispatch.ts';
import { Intake } from './intake.ts';
import { Ledger, type LedgerReport } from './ledger.ts';
import type { Live } from './parcel.ts';
import type {
  DiskHealth,
  Done,
  Inspection,
  JournalEntry,
  LaneDepth,
  Opened,
  Salvage,
  StoreLimits,
} from './protocol.ts';
import type { Row, RowId } from './row.ts';
import { startStore, type StoreClient } from './store-client.ts';

/** A task result may have 64 KiB; nothing that a driver says comes near this. */
const body_chars_max = 256 * 1024;
const sweep_ms = 250;
const look_for_oldest_ms = 10_000;
const drops_report_every_ms = 10_000;
/** The cloud has so long to confirm a sync message before it is sent again. */
const resend_unconfirmed_ms = 60_000;
/** Kept in memory while the disk refuses; beyond it the oldest of the least important are given up. */
const memory_rows_max = 10_000;
const disk_refuses = 'the disk does not take messages: going on from memory';

export interface OutboxLog {
  info(facts: object, sentence: string): void;
  warn(facts: object, sentence: string): void;
  error(facts: object, sentence: string): void;
}

export interface OutboxOptions {
  readonly file: string;
  readonly limits: StoreLimits;
  readonly clock: Clock;
  readonly log: OutboxLog;
  /** Rows and bytes in one batch of the backlog. */
  readonly form?: Readonly<BacklogForm>;
}

const form_default: Readonly<BacklogForm> = { batch_rows: 200, batch_bytes: 64 * 1024 };

/** Opens the buffer file in its thread. Rejects with `StorageUnavailable` if not even a new file can be made. */
export async function openOutbox(options: OutboxOptions): Promise<Outbox> {
  const { client, opened } = await startStore({
    file: options.file,
    limits: options.limits,
    boot_id: options.clock.boot_id,
  });
  return new Outbox(client, opened, options);
}

export class Outbox implements Appender, Journal {
  readonly left_open: readonly JournalEntry[];
  readonly opened: Opened;
  /** Rejects when the thread that owns the file dies by itself: the process has to start again. */
  readonly crashed: Promise<void>;
  /** What the uplink talks to. */
  readonly dispatch: Dispatch;
  /** Sees every message as it is accepted. */
  onAccepted: (row: Row) => void = () => undefined;

  readonly #client: StoreClient;
  readonly #ledger: Ledger;
  readonly #intake: Intake;
  readonly #committer: Committer;
  readonly #log: OutboxLog;
  readonly #end = new AbortController();
  #health: DiskHealth;
  #oldest_ms: number | null = null;
  #salvage: Salvage | undefined;

  constructor(client: StoreClient, opened: Opened, options: OutboxOptions) {
    this.#client = client;
    this.#log = options.log;
    this.opened = opened;
    this.crashed = client.closed;
    this.left_open = opened.open_tasks;
    this.#health = opened.health;
    this.#ledger = new Ledger(opened);
    this.#intake = new Intake(opened.epoch, options.clock, () => performance.now());
    this.#committer = new Committer({
      now: () => performance.now(),
      commit: async (work) => client.commit(work),
      hold: (live) => this.dispatch.holds(live),
      written: (lives, done) => this.#written(lives, done),
      failed: (lives, error) => this.#refusedByDisk(lives, error),
    });
    this.dispatch = new Dispatch({
      client,
      ledger: this.#ledger,
      committer: this.#committer,
      form: { ...(options.form ?? form_default) },
      cloud_acks: opened.cloud_acks,
      clockOffset: () => this.#intake.offset_ms,
      diskFailed: (error) => this.#refusedByDisk([], error),
      warn: (facts, sentence) => options.log.warn(facts, sentence),
    });
    every(sweep_ms, this.#end.signal, () => this.#sweep());
    every(drops_report_every_ms, this.#end.signal, () => this.#reportDrops());
    every(resend_unconfirmed_ms / 2, this.#end.signal, () => void this.#resendUnconfirmed());
    every(look_for_oldest_ms, this.#end.signal, () => void this.#lookForOldest());
    void this.#lookForOldest();
    this.#learnClock();
    if (opened.salvage) this.#tellSalvage(opened.salvage);
    if (opened.health.state !== 'ok') this.#log.error({ reason: opened.health.detail }, disk_refuses);
  }

  get epoch(): number {
    return this.#intake.epoch;
  }

  append(draft: Draft): Position {
    const live = this.#intake.number(draft);
    if (live.row.body.length > body_chars_max) return this.#tooLarge(live);
    this.#ledger.accepted();
    this.dispatch.accept(live);
    this.onAccepted(live.row);
    return this.#intake.position(live);
  }

  async admit(entry: JournalEntry): Promise<JournalEntry | undefined> {
    return this.#client.admit(entry);
  }

  async record(entry: JournalEntry, report: Draft): Promise<void> {
    this.append(report);
    return this.#committer.journal(entry);
  }

  async find(task_id: string): Promise<JournalEntry | undefined> {
    return this.#client.findTask(task_id);
  }

  async list(limit: number): Promise<readonly JournalEntry[]> {
    return this.#client.listTasks(limit);
  }

  /** `down/ack`: the cloud has stored these ranges of an epoch. */
  async confirm(ack: {
    readonly epoch: number;
    readonly ranges: readonly (readonly [number, number])[];
  }): Promise<void> {
    this.dispatch.cloud_acks = true;
    await this.#committer.settled(0);
    this.#ledger.committed(await this.#client.confirm(ack), 0);
  }

  /** What happened to a damaged file, at the start or since. */
  get salvage(): Salvage | undefined {
    return this.#salvage;
  }

  ledger(): LedgerReport {
    return this.#ledger.report();
  }

  health(): DiskHealth {
    return this.#health;
  }

  /** Rows of each lane on disk, and how many wait in memory: for the broker, or until the disk takes them. */
  depth(): ReadonlyMap<Lane, LaneDepth & { readonly memory_rows: number }> {
    const memory_rows = new Map(lanes.map((lane) => [lane, this.dispatch.liveRows(lane)]));
    for (const { row, place } of this.#committer.rows) {
      if (place !== 'queued') memory_rows.set(row.lane, (memory_rows.get(row.lane) ?? 0) + 1);
    }
    return new Map(
      lanes.map((lane) => [lane, { ...this.#ledger.depth[lane], memory_rows: memory_rows.get(lane) ?? 0 }]),
    );
  }

  async inspect(): Promise<Inspection> {
    return this.#client.inspect();
  }

  /** When the oldest row on disk was observed, as known some seconds ago; null when there is none. */
  get oldest_ms(): number | null {
    return this.#ledger.disk_rows > 0 ? this.#oldest_ms : null;
  }

  /** Puts quarantined rows, or all of them, back in line; answers how many. */
  async retryQuarantined(ids: readonly RowId[] | undefined): Promise<number> {
    const before = this.#ledger.quarantined_rows;
    this.#ledger.committed(await this.#client.retryQuarantined(ids), 0);
    this.dispatch.touchAll();
    return before - this.#ledger.quarantined_rows;
  }

  /** Drops quarantined rows, or all of them; answers how many. */
  async discardQuarantined(ids: readonly RowId[] | undefined): Promise<number> {
    const before = this.#ledger.quarantined_rows;
    this.#ledger.committed(await this.#client.discardQuarantined(ids), 0);
    return before - this.#ledger.quarantined_rows;
  }

  /** Resolves once all sync messages accepted so far are on disk. */
  async committed(): Promise<void> {
    await this.#committer.settled(0);
  }

  /** Writes everything that is still in memory only. */
  async flush(): Promise<void> {
    this.dispatch.spillAll();
    await this.#committer.settled(0);
  }

  /** Writes what is left and ends the thread. What the disk still refuses then is lost, and said. */
  async close(): Promise<void> {
    this.#end.abort();
    this.dispatch.disconnected();
    try {
      await this.flush();
    } catch (error) {
      this.#log.error(
        { rows: this.#ledger.memory_rows, reason: messageOf(error) },
        'the disk refused the last messages: they are lost',
      );
    }
    this.#committer.close();
    await this.#client.close();
  }

  #tooLarge(live: Live): Position {
    const { id, lane, channel, body } = live.row;
    this.#ledger.refusedAtOnce('too_large', lane, id);
    this.#log.error(
      { channel, characters: body.length, body_chars_max },
      'a message is larger than any may be: dropped',
    );
    return this.#intake.position(live);
  }

  #written(lives: readonly Live[], done: Done): void {
    this.#ledger.committed(done, lives.length);
    this.#tellHealth(done.health);
    this.#health = done.health;
    if (done.salvage) this.#tellSalvage(done.salvage);
    this.dispatch.written(lives);
  }

  #tellHealth({ state, detail }: DiskHealth): void {
    if (state === this.#health.state) return;
    if (state === 'ok') this.#log.info({}, 'the disk takes messages again');
    else this.#log.warn({ reason: detail }, 'the disk is full: the least important messages make room');
  }

  #tellSalvage(salvage: Salvage): void {
    this.#salvage = salvage;
    this.#log.error(
      { ...salvage },
      'the buffer file was damaged: it was moved aside and read as far as possible',
    );
  }

  #refusedByDisk(lives: readonly Live[], error: unknown): void {
    if (this.#health.state === 'ok') this.#log.error({ reason: messageOf(error) }, disk_refuses);
    this.#health = { state: 'failing', detail: messageOf(error) };
    this.dispatch.unwritten(lives);
    this.#limitMemory();
  }

  /** While the disk refuses, memory is all there is: the oldest of the least important lanes go first. */
  #limitMemory(): void {
    let excess = this.#ledger.memory_rows - memory_rows_max;
    for (const lane of lanes.toReversed()) {
      if (excess <= 0) return;
      const given_up = this.#committer.forget(
        (live) => live.row.lane === lane && live.place === 'nowhere' && excess-- > 0,
      );
      for (const { row } of given_up) this.#ledger.droppedFromMemory('memory_full', row.lane, row.id);
    }
  }

  #sweep(): void {
    const disk = this.#health.state !== 'failing';
    const given_up = this.dispatch.sweep({ disk });
    for (const { row } of given_up) this.#ledger.droppedFromMemory('memory_full', row.lane, row.id);
    if (!disk) this.#limitMemory();
    this.#learnClock();
  }

  /** A hole in the sequence must never look like a loss on the way, so drops are messages that are never dropped themselves. */
  #reportDrops(): void {
    const drops = this.#ledger.takeUnreported(drops_max);
    if (drops.length === 0) return;
    this.append({
      lane: 'task',
      channel: channels.drops,
      data: { drops: drops.map((drop) => ({ ...drop })) },
    });
    this.#committer.add(({ reported }) => reported.push(...drops), 0);
  }

  #learnClock(): void {
    const offset_ms = this.#intake.clockBecameRight();
    if (offset_ms === undefined) return;
    this.#client.setClockOffset(offset_ms).catch((error: unknown) => this.#refusedByDisk([], error));
  }

  async #lookForOldest(): Promise<void> {
    try {
      const { lanes: found } = await this.#client.inspect();
      const times = Object.values(found).flatMap(({ oldest_ms }) => oldest_ms ?? []);
      this.#oldest_ms = times.length > 0 ? Math.min(...times) : null;
    } catch (error) {
      this.#refusedByDisk([], error);
    }
  }

  async #resendUnconfirmed(): Promise<void> {
    try {
      const rows = await this.#client.resendUnconfirmed(resend_unconfirmed_ms);
      if (rows > 0) this.dispatch.touchAll();
    } catch (error) {
      this.#refusedByDisk([], error);
    }
  }
}
