/**
 * The outbox: accepts messages, stores them by the durability rule of their lane, and counts them. The interface for the
 * uplink is `dispatch`.
 */
import type { Position } from '../../../contract/envelope.ts';
import { type Lane, lanes } from '../../../contract/lanes.ts';
import { messageOf } from '../../../platform/errors.ts';
import type { Clock } from '../../../platform/clock.ts';
import type { Stalls } from '../../../platform/stalls.ts';
import { every, within } from '../../../platform/time.ts';
import type { Appender, Conclusion, Draft, Journal, OutboxLog } from '../api.ts';
import type { BacklogForm } from './backlog.ts';
import { CloudAcks } from './cloud-acks.ts';
import { type CommitFailure, Committer } from './committer.ts';
import { DiskState, lookAtFile, Oldest } from './disk-health.ts';
import { Dispatch } from './dispatch.ts';
import { DropEpisodes, DropReports } from './drops.ts';
import { EpochRollover, Numbering, type Numbers } from './numbering.ts';
import { Ledger, type LedgerReport } from './ledger.ts';
import { MemoryLimit } from './memory-limit.ts';
import { isAcknowledged } from './live-state.ts';
import type { Live } from './outgoing.ts';
import type {
  DiskHealth,
  Done,
  Drop,
  Found,
  Inspection,
  JournalEntry,
  LaneDepth,
  Opened,
  OpenOptions,
  QuarantinedMessage,
  QuarantinedRow,
  Salvage,
  Stored,
  StoreLimits,
} from '../protocol.ts';
import { hoursSince2026, positionOf, type Row, type RowId } from '../row.ts';
import { texts } from '../texts.ts';
import { noteUnwritten } from '../unwritten.ts';
import { type StartStore, startStore, type StoreClient } from './store-client.ts';

/** Monotonic time. */
const now = (): number => performance.now();
/** A task result may have 64 KiB; no message of a driver comes near this. */
const body_chars_max = 256 * 1024;
const sweep_ms = 250;
const drops_report_every_ms = 10_000;
const resend_look_every_ms = 1_000;
/** Time for the disk to store what is left at a clean stop. */
const flush_at_close_ms = 10_000;
/** Time for the thread to end: a thread that hangs in the kernel ends with the process. */
const end_thread_ms = 2_000;

export interface OutboxOptions {
  readonly file: string;
  readonly limits: StoreLimits;
  readonly clock: Clock;
  readonly log: OutboxLog;
  /** The kit that the messages belong to; left out: the owner of the file. */
  readonly kit_id?: string;
  /** Where the last epoch is kept for as long as the disk cannot be written. */
  readonly runtime_dir?: string;
  /** Names this machine, so that a copied file is noticed. */
  readonly machine?: string | undefined;
  /** Rows and bytes in one batch of the backlog. */
  readonly form?: Readonly<BacklogForm>;
  /** Left out: as they are. */
  readonly numbers?: Numbers | undefined;
  /** Where the buffer file is served; left out: in a separate thread. */
  readonly startStore?: StartStore | undefined;
  /** Left out: those of this process. */
  readonly stalls?: Stalls | undefined;
  readonly onSalvage?: OpenOptions['onSalvage'];
}

const form_default: Readonly<BacklogForm> = { batch_rows: 1000, batch_bytes: 320 * 1024 };

/** Opens the buffer file in its thread. Rejects with `StorageUnavailable` if not even a new file can be made. */
export async function openOutbox(options: OutboxOptions): Promise<Outbox> {
  const start: StartStore = options.startStore ?? startStore;
  const { file, limits, clock, kit_id, runtime_dir, machine, onSalvage } = options;
  const { boot_id } = clock;
  const clock_synced = clock.stamp().synced;
  const store = { file, limits, boot_id, kit_id, runtime_dir, machine, clock_synced };
  const { client, opened } = await start(store, onSalvage);
  return new Outbox(client, opened, options);
}

export class Outbox implements Appender, Journal {
  readonly left_open: readonly JournalEntry[];
  readonly opened: Opened;
  /** Rejects when the thread that owns the file ends unexpectedly: the process must restart. */
  readonly crashed: Promise<void>;
  /** The interface for the uplink. */
  readonly dispatch: Dispatch;
  readonly quarantine: Quarantine;
  readonly drop_episodes: DropEpisodes;
  /** Sees every message as it is accepted. */
  onAccepted: (row: Row) => void = () => undefined;
  /** Receives the tasks that an earlier run left open when the file could not be read at the start. */
  onLeftOpen: (entries: readonly JournalEntry[]) => void = () => undefined;
  /** Called with what an earlier run left announced, in the same case. */
  onAnnounced: (announced: Found['announced']) => void = () => undefined;
  /** Called with every epoch that begins while the process runs: the cloud may take what was sent before for older than what it has. */
  onEpoch: (epoch: number) => void = () => undefined;

  readonly #client: StoreClient;
  readonly #ledger: Ledger;
  readonly #numbering: Numbering;
  readonly #began_mono_ms: number;
  readonly #epochs: EpochRollover;
  readonly #committer: Committer;
  readonly #log: OutboxLog;
  readonly #cloud_acks: CloudAcks;
  readonly #drop_reports: DropReports;
  readonly #end = new AbortController();
  readonly #oldest: Oldest;
  readonly #disk: DiskState;
  readonly #memory: MemoryLimit;
  /** Notes what the disk did not store; the next start reports it. */
  readonly #note: (epoch: number) => boolean;

  constructor(client: StoreClient, opened: Opened, options: OutboxOptions) {
    const { log } = options;
    const failed = (error: unknown): void => this.#diskFailed(error);
    this.#client = client;
    this.#log = log;
    this.#note = (epoch) => noteRest(options, epoch, this.#committer);
    this.opened = opened;
    this.crashed = client.closed;
    this.left_open = opened.open_tasks;
    const disk = new DiskState(opened, log);
    this.#disk = disk;
    this.drop_episodes = new DropEpisodes({ now, disk, log });
    const committer = new Committer({
      now,
      stalls: options.stalls,
      commit: async (work) => client.commit(work),
      began: (lives) => this.dispatch.commitBegan(lives),
      written: (lives, done) => this.#answered(lives, done, 'commit'),
      failed: (lives, error, event) => this.#diskFailed(error, lives, event),
    });
    this.#committer = committer;
    const ledger = new Ledger(opened, committer, this.drop_episodes);
    this.#ledger = ledger;
    const numbering = new Numbering(opened.epoch, options.clock, now, options.numbers);
    this.#numbering = numbering;
    this.#began_mono_ms = options.clock.stamp().mono_ms;
    this.#epochs = new EpochRollover({
      numbering,
      client,
      observe: (epoch) => this.onEpoch(epoch),
      log,
      now,
    });
    this.#drop_reports = new DropReports({
      ledger,
      committer,
      append: (draft) => this.append(draft),
      isConnected: () => this.dispatch.is_connected,
      now,
    });
    const dispatch = (): Dispatch => this.dispatch;
    this.#cloud_acks = new CloudAcks({ client, committer, ledger, numbering, dispatch, failed, log, now });
    this.dispatch = new Dispatch({
      client,
      ledger,
      committer,
      disk,
      cloud_acks: this.#cloud_acks,
      hadCloudAcks: opened.cloud_acks,
      form: { ...(options.form ?? form_default) },
      clockOffset: () => numbering.offset_ms,
      diskFailed: failed,
      sent: (row) => this.#drop_reports.sent(row),
      log,
    });
    this.quarantine = new Quarantine(client, ledger, () => this.dispatch.touchAll());
    this.#memory = new MemoryLimit({ ledger, committer, disk, dispatch: this.dispatch });
    const { signal } = this.#end;
    const seen = (done: Done): void => this.#answered([], done, 'look');
    this.#oldest = new Oldest({ client, failed }, signal);
    lookAtFile({ client, disk, seen, failed }, signal);
    every(sweep_ms, signal, () => this.#sweep());
    every(drops_report_every_ms, signal, () => this.#drop_reports.tick());
    every(resend_look_every_ms, signal, () => void this.#cloud_acks.tick());
    this.#learnClock();
    if (opened.health.state === 'failing') committer.suspect();
  }

  get epoch(): number {
    return this.#numbering.epoch;
  }

  /** Begins a higher epoch, at least `min` if possible; returns the new epoch. */
  async beginEpoch(min: number): Promise<number> {
    return this.#epochs.begin(min);
  }

  append(draft: Draft): Position {
    const live = this.#numbering.number(draft);
    if (live.row.body.length > body_chars_max) return this.#tooLarge(live);
    this.#ledger.accepted();
    this.dispatch.accept(live);
    this.#memory.accepted(live);
    if (!live.from_disk_only) this.onAccepted(live.row);
    return this.#numbering.position(live);
  }

  async admit(entry: JournalEntry): Promise<JournalEntry | undefined> {
    return this.#client.admit(entry);
  }

  async record(entry: JournalEntry, report: Draft): Promise<void> {
    this.append(report);
    return this.#committer.journal(entry);
  }

  conclude(entry: JournalEntry, report: Draft): Conclusion {
    this.append({ ...report, from_disk_only: true });
    const tried = this.#committer.journal(entry);
    const stored = this.#committer.untilStored(tried);
    // A stop of the process ends the attempts and rejects the promise.
    stored.catch(() => undefined);
    return { tried, stored };
  }

  async find(task_id: string): Promise<JournalEntry | undefined> {
    return this.#client.findTask(task_id);
  }

  async list(limit: number): Promise<readonly JournalEntry[]> {
    return this.#client.listTasks(limit);
  }

  /** `down/ack`: the cloud has stored these ranges of an epoch. Never waits: they are applied in the background. */
  confirm(stored: Stored): void {
    this.#epochs.claimed(stored);
    this.dispatch.cloudStored(stored);
  }

  /** What happened to a damaged file, at the start or since. */
  get salvage(): Salvage | undefined {
    return this.#disk.salvage;
  }

  ledger(): LedgerReport {
    return this.#ledger.report();
  }

  /** Without what left the buffer before this run. */
  ledgerOfRun(): LedgerReport {
    return this.#ledger.reportOfRun();
  }

  health(): DiskHealth {
    return this.#disk.health;
  }

  /** How long the disk has not answered a commit; 0 when it owes no answer. */
  unanswered_ms(): number {
    return this.#committer.unanswered_ms;
  }

  /** Rows of each lane on disk, and how many wait in memory: for the broker, or until the disk takes them. */
  depth(): ReadonlyMap<Lane, LaneDepth & { readonly memory_rows: number }> {
    const memory_rows = new Map(lanes.map((lane) => [lane, this.dispatch.liveRows(lane)]));
    for (const { row, state } of this.#committer.rows) {
      if (state.disk !== 'no' && state.place !== 'queued')
        memory_rows.set(row.lane, (memory_rows.get(row.lane) ?? 0) + 1);
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
    return this.#ledger.disk_rows > 0 ? this.#oldest.ms : null;
  }

  /** Resolves once all sync messages accepted so far are on disk; rejects when the disk refuses them. */
  async committed(): Promise<void> {
    await this.#committer.settled(0);
  }

  /** Writes everything that is still in memory only; rejects when the disk refuses it. */
  async flush(): Promise<void> {
    this.dispatch.spillAll();
    this.#committer.closeBooks();
    await this.#committer.settled(0);
  }

  /** Writes what is left and ends the thread. What the disk does not store by then is lost, logged, and noted for the next start. */
  async close(): Promise<void> {
    this.#end.abort();
    this.dispatch.disconnected();
    const flushed = this.flush().then(
      () => '',
      (error: unknown) => messageOf(error),
    );
    const reason = (await within(flush_at_close_ms, flushed)) ?? texts.disk_timed_out;
    this.#committer.close();
    const is_noted = this.#note(this.epoch);
    const { memory_rows: rows } = this.#ledger;
    if (rows > 0) this.#log.error({ rows, reason, is_noted }, texts.not_written);
    this.drop_episodes.close();
    await within(end_thread_ms, this.#client.close());
  }

  #tooLarge(live: Live): Position {
    const { channel, body } = live.row;
    this.#ledger.refusedAtOnce('too_large', live.row);
    this.#log.error({ channel, characters: body.length, body_chars_max }, texts.too_large);
    return this.#numbering.position(live);
  }

  #answered(lives: readonly Live[], done: Done, to: 'commit' | 'look'): void {
    this.#ledger.committed(done, lives.length);
    this.#disk.answered(done, to);
    if (done.found) this.#openedLate(done.found);
    this.dispatch.written(lives);
    for (const live of lives) if (live.from_disk_only) this.onAccepted(live.row);
  }

  /** The file could not be read at the start and now is. */
  #openedLate({ drops, open_tasks, announced, cloud_acks, left }: Found): void {
    this.#ledger.found(drops, left);
    if (cloud_acks) this.dispatch.cloudAckFound();
    this.#log.info({ open_tasks: open_tasks.length }, texts.file_opened_late);
    this.onLeftOpen(open_tasks);
    this.onAnnounced(announced);
  }

  #diskFailed(error: unknown, lives: readonly Live[] = [], event: CommitFailure = 'disk_away'): void {
    this.#disk.refused(error);
    this.#committer.suspect();
    this.dispatch.unwritten(lives, event);
    this.#memory.apply();
  }

  #sweep(): void {
    this.dispatch.sweep();
    if (this.#disk.isFailing) this.#memory.apply();
    else void this.#cloud_acks.retry();
    this.#epochs.tick();
    this.drop_episodes.tick();
    this.#learnClock();
  }

  #learnClock(): void {
    const offset_ms = this.#numbering.clockBecameRight();
    if (offset_ms === undefined) return;
    this.#client.setClockOffset(offset_ms).catch((error: unknown) => this.#diskFailed(error));
    // It was chosen without the time: an old copy of the state may have been put back, or the file is new.
    if (this.epoch < hoursSince2026(offset_ms + this.#began_mono_ms))
      this.beginEpoch(0).catch((error: unknown) => this.#diskFailed(error));
  }
}

/** The messages that the broker refused for good: listed, returned to the buffer or dropped, by command. */
class Quarantine {
  readonly #client: StoreClient;
  readonly #ledger: Ledger;
  readonly #returned: () => void;

  /** `returned`: called when rows are in the buffer again. */
  constructor(client: StoreClient, ledger: Ledger, returned: () => void) {
    this.#client = client;
    this.#ledger = ledger;
    this.#returned = returned;
  }

  /** The next rows after a number, without their bodies; at most `quarantine_page_rows`. */
  async list(after: RowId = 0): Promise<readonly QuarantinedRow[]> {
    return this.#client.listQuarantined(after);
  }

  async find(id: RowId): Promise<QuarantinedMessage | undefined> {
    return this.#client.findQuarantined(id);
  }

  /** Returns these rows, or all of them, to the buffer; answers how many. */
  async retry(ids: readonly RowId[] | undefined): Promise<number> {
    const before = this.#ledger.quarantined_rows;
    this.#ledger.committed(await this.#client.retryQuarantined(ids), 0);
    this.#returned();
    return before - this.#ledger.quarantined_rows;
  }

  /** Drops these rows, or all of them; answers how many. */
  async discard(ids: readonly RowId[] | undefined): Promise<number> {
    const before = this.#ledger.quarantined_rows;
    this.#ledger.committed(await this.#client.discardQuarantined(ids), 0);
    return before - this.#ledger.quarantined_rows;
  }
}

/** Notes what a stop leaves in memory. False when there is nothing, or when nothing will name it. */
function noteRest(
  { runtime_dir, kit_id }: Pick<OutboxOptions, 'runtime_dir' | 'kit_id'>,
  epoch: number,
  { unwritten, drops }: Committer,
): boolean {
  const rows = runsOf(unwritten);
  if (rows.length === 0 && drops.length === 0) return false;
  return noteUnwritten(runtime_dir, { epoch, kit_id, rows, drops, stored: [] });
}

/** Messages that the broker did not acknowledge, as runs of consecutive numbers. */
function runsOf(lives: readonly Live[]): readonly Drop[] {
  const rows = lives.filter(({ state }) => !isAcknowledged(state)).map(({ row }) => row);
  const runs: Drop[] = [];
  for (const { id, lane } of rows.toSorted((a, b) => a.id - b.id)) {
    const { epoch, seq } = positionOf(id);
    const last = runs.at(-1);
    if (last?.epoch === epoch && last.lane === lane && last.hi === seq - 1)
      runs[runs.length - 1] = { ...last, rows: last.rows + 1, hi: seq };
    else runs.push({ epoch, lane, reason: 'memory_full', rows: 1, lo: seq, hi: seq });
  }
  return runs;
}
