/**
 * The side of the outbox that faces the uplink: hands messages out in the order of their importance, and lets go of one
 * only when the broker has it.
 *
 * A message is in exactly one place at a time: in the live queue or in flight (`hand`), on disk for the backlog to find,
 * or, while the disk refuses, in the next commit.
 */
import { laneRules, lanes, type Lane } from '../contract/lanes.ts';
import { Backlog, type BacklogForm } from './backlog.ts';
import type { Committer } from './committer.ts';
import { Echo } from './echo.ts';
import { Hearing } from './hearing.ts';
import type { Ledger } from './ledger.ts';
import { LiveLanes } from './live-lanes.ts';
import { liveParcel, packetParcel, type ClockOffset, type Live, type Parcel } from './parcel.ts';
import type { RowRef } from './protocol.ts';
import type { StoreClient } from './store-client.ts';

/** Group commit of what must not be lost, and of deletions: what is not deleted yet is sent twice after a kill. */
const sync_commit_ms = 20;
/** Group commit of what may be lost at a power cut. */
const lazy_commit_ms = 250;
/** A lazy message that the broker has not acknowledged by then goes to the disk: with a sweep and a commit, within 1.25 s. */
const spill_after_ms = 800;
const packet_rows_max = 500;
/** Parcels of the backlog that go well before larger batches are tried again. */
const larger_after = 64;
/** While live telemetry never ends, the backlog still gets every so many-th place. */
const backlog_share = 10;

/** Who has the last word on a sync message: the broker's PUBACK, the cloud's `down/ack`, or the cloud once it ever spoke. */
export type AckRule = 'auto' | 'broker' | 'cloud';

export interface Connected {
  /** The broker remembers us, so what it acknowledged is not lost. */
  readonly session_present: boolean;
  /** Live telemetry leaves in packets of this time; 0: every message at once. */
  readonly packet_ms: number;
  readonly ack: AckRule;
}

interface DispatchOptions {
  readonly client: StoreClient;
  readonly ledger: Ledger;
  readonly committer: Committer;
  readonly form: BacklogForm;
  readonly cloud_acks: boolean;
  readonly clockOffset: () => ClockOffset;
  readonly diskFailed: (error: unknown) => void;
  readonly warn: (facts: object, sentence: string) => void;
}

export class Dispatch {
  /** Called when there is something to send; set by the uplink. */
  onReady: () => void = () => undefined;
  cloud_acks: boolean;

  readonly #options: DispatchOptions;
  readonly #committer: Committer;
  readonly #backlog: Backlog;
  readonly #hearing = new Hearing(() => performance.now());
  readonly #echo = new Echo();
  readonly #live = new LiveLanes();
  readonly #in_flight = new Set<Parcel>();
  readonly #form: BacklogForm;
  readonly #batch_rows_top: number;
  #link: Connected | undefined;
  #batch_rows_max: number;
  #went_well = 0;
  #ack: AckRule = 'auto';
  /** What the last connection held is free again: what is held from now on is not given out twice. */
  #released = false;
  #turn = 0;

  constructor(options: DispatchOptions) {
    this.#options = options;
    this.#committer = options.committer;
    this.#form = options.form;
    this.#batch_rows_top = options.form.batch_rows;
    this.#batch_rows_max = options.form.batch_rows;
    this.cloud_acks = options.cloud_acks;
    this.#backlog = new Backlog({
      client: options.client,
      form: options.form,
      alarms: () => options.ledger.depth.alarm.rows,
      ready: () => this.onReady(),
      failed: options.diskFailed,
    });
  }

  // --- Accepted messages come in --------------------------------------------------------------------------------

  /** A new message: to the broker at once if its lane allows and somebody listens, else to the disk. */
  accept(live: Live): void {
    if (laneRules[live.row.lane].durability === 'sync') this.#committer.write(live, sync_commit_ms);
    else if (this.#takesLive(live)) this.#queue(live);
    else this.#committer.write(live, lazy_commit_ms);
  }

  /** Whether a row that is being written stays in memory, to be sent as soon as it is on disk. */
  holds(live: Live): boolean {
    const waits = live.place === 'nowhere' && laneRules[live.row.lane].durability === 'sync';
    if (waits && this.#released && this.#takesLive(live)) live.place = 'held';
    return live.place !== 'nowhere';
  }

  /** These rows are on disk now. */
  written(lives: readonly Live[]): void {
    for (const live of lives) {
      if (live.acked) this.#deliverRow(live.row);
      else if (live.place === 'held' && this.#link) this.#queue(live);
      else if (live.place === 'held') live.place = 'nowhere';
      else if (live.place === 'nowhere') this.#backlog.touched(live.row.lane);
    }
  }

  /** The disk refuses: what cannot wait goes out from memory. */
  unwritten(lives: readonly Live[]): void {
    for (const live of lives) {
      if (live.acked) this.#options.ledger.deliveredFromMemory(1);
      if (live.acked || live.place === 'queued' || live.place === 'sent') continue;
      live.place = 'nowhere';
      if (this.#takesLive(live)) this.#queue(live);
    }
  }

  // --- The uplink takes them out --------------------------------------------------------------------------------

  /** The connection is up. Resolves when the backlog may be drained. */
  async connected(link: Connected): Promise<void> {
    this.#ack = link.ack;
    this.#hearing.reset();
    this.#echo.connected(link);
    this.#link = link;
    try {
      await this.#committer.settled(0);
      await this.#options.client.releaseAll();
    } catch (error) {
      this.#options.diskFailed(error);
    }
    if (this.#link !== link) return;
    this.#released = true;
    this.#backlog.open();
    this.onReady();
  }

  /** The connection is gone: what was in flight is sent again. */
  disconnected(): void {
    this.#link = undefined;
    this.#released = false;
    this.#backlog.close();
    for (const parcel of this.#in_flight) this.#takeBack(parcel);
    this.#in_flight.clear();
    this.spillAll();
  }

  /** The next message to publish, or undefined when there is none now. `backlog: false` leaves the buffer alone. */
  next({ backlog }: { readonly backlog: boolean }): Parcel | undefined {
    if (!this.#link) return undefined;
    const urgent = this.#nextLive(() => this.#live.shiftUrgent());
    const parcel = urgent ?? this.#nextEcho() ?? this.#nextShared(backlog);
    if (parcel) this.#in_flight.add(parcel);
    return parcel;
  }

  /** The broker acknowledged it. `heard: false`: it has nobody to give it to (PUBACK 0x10). */
  acknowledged(parcel: Parcel, { heard }: { readonly heard: boolean }): void {
    if (!this.#in_flight.delete(parcel)) return;
    if (!heard && !parcel.retain) {
      this.#hearing.unheard(parcel.channel);
      this.#takeBack(parcel);
      return;
    }
    this.#hearing.heard(parcel.channel);
    this.#deliver(parcel);
    if (parcel.backlog) this.#tryLarger();
    if (parcel.content.kind !== 'echo') this.#echo.remember(parcel, performance.now());
  }

  /** One message that was too large has made all batches small: they grow again. */
  #tryLarger(): void {
    this.#went_well += 1;
    if (this.#went_well < larger_after) return;
    this.#went_well = 0;
    this.#batch_rows_max = Math.min(this.#batch_rows_max * 2, this.#batch_rows_top);
    this.#form.batch_rows = this.#batch_rows_max;
  }

  /** It was not taken this time and may be handed out again. */
  giveBack(parcel: Parcel): void {
    if (this.#in_flight.delete(parcel)) this.#takeBack(parcel);
  }

  /** How many rows fit one batch on this link, unless the broker has set a lower limit. */
  setBatchRows(rows: number): void {
    this.#form.batch_rows = Math.min(rows, this.#batch_rows_max);
  }

  /** The broker will never take this one: it goes to the quarantine with the reason. A batch is split instead. */
  refused(parcel: Parcel, code: number, reason: string): void {
    if (!this.#in_flight.delete(parcel)) return;
    const { content } = parcel;
    if (content.kind === 'echo') return;
    if (content.kind === 'batch' || content.kind === 'packet') {
      this.#batch_rows_max = Math.max(1, Math.floor(Math.min(this.#form.batch_rows, parcel.rows) / 2));
      this.#form.batch_rows = this.#batch_rows_max;
      this.#went_well = 0;
      this.#options.warn(
        { code, reason, batch_rows: this.#form.batch_rows },
        'the broker refused a batch: smaller ones from now on',
      );
      this.#takeBack(parcel);
      return;
    }
    const row = content.kind === 'live' ? content.live.row : content.row;
    this.#options.warn(
      { channel: row.channel, code, reason },
      'the broker refused a message: it is in the quarantine',
    );
    // A row that is in memory only goes through the disk into the quarantine, so that the books need no second way.
    if (content.kind === 'live') this.#committer.write(content.live, lazy_commit_ms);
    this.#committer.add(({ quarantined }) => quarantined.push({ row, code, reason }), lazy_commit_ms);
  }

  // --- Time goes on ---------------------------------------------------------------------------------------------

  /** Sends what has waited too long to the disk. Answers what must be given up because the disk refuses. */
  sweep({ disk }: { readonly disk: boolean }): readonly Live[] {
    const patience_ms = spill_after_ms + (this.#link?.packet_ms ?? 0);
    const overdue = this.#live.shiftOverdue(performance.now(), disk ? patience_ms : Infinity);
    for (const live of overdue) {
      if (disk) this.#putDown(live, 0);
      else live.place = 'nowhere';
    }
    if (disk) this.#spillInFlight(patience_ms);
    this.#echo.forget(performance.now());
    this.#backlog.wake();
    this.onReady();
    return disk ? [] : overdue.filter((live) => live.disk === 'no');
  }

  /** Writes everything that waits in memory. */
  spillAll(): void {
    for (const live of this.#live.drain()) this.#putDown(live);
  }

  unheard(): readonly string[] {
    return this.#hearing.kinds();
  }

  /** Messages of this run that wait in memory. */
  get live_rows(): number {
    return this.#live.rows;
  }

  liveRows(lane: Lane): number {
    return this.#live.rowsOf(lane);
  }

  /** Rows of every lane may have come back from the store's side: quarantine, unconfirmed. */
  touchAll(): void {
    for (const lane of lanes) this.#backlog.touched(lane);
  }

  // --- Within ---------------------------------------------------------------------------------------------------

  #takesLive(live: Live): boolean {
    return this.#link !== undefined && !this.#live.full && !this.#hearing.rests(live.row.channel);
  }

  #queue(live: Live): void {
    this.#live.push(live);
    this.onReady();
  }

  #nextShared(backlog: boolean): Parcel | undefined {
    this.#turn = (this.#turn + 1) % backlog_share;
    const first = backlog && this.#turn === 0 ? this.#nextBacklog() : undefined;
    return first ?? this.#nextTelemetry() ?? (backlog ? this.#nextBacklog() : undefined);
  }

  #nextEcho(): Parcel | undefined {
    const parcel = this.#echo.shift();
    if (!parcel || parcel.retain || this.#hearing.allows(parcel.channel)) return parcel;
    this.#echo.giveBack(parcel);
    return undefined;
  }

  #nextTelemetry(): Parcel | undefined {
    const packet_ms = this.#link?.packet_ms ?? 0;
    if (packet_ms === 0 || this.#form.batch_rows === 1)
      return this.#nextLive(() => this.#live.shiftTelemetry());
    const lives = this.#live.shiftPacket(
      performance.now(),
      packet_ms,
      Math.min(packet_rows_max, this.#form.batch_rows),
    );
    for (const live of lives) live.place = 'sent';
    return lives.length > 0 ? packetParcel(lives, this.#options.clockOffset()) : undefined;
  }

  #nextLive(shift: () => Live | undefined): Parcel | undefined {
    for (let live = shift(); live; live = shift()) {
      if (live.row.lane === 'presence' || this.#hearing.allows(live.row.channel)) {
        live.place = 'sent';
        return liveParcel(live, this.#options.clockOffset());
      }
      this.#putDown(live);
    }
    return undefined;
  }

  #nextBacklog(): Parcel | undefined {
    for (let parcel = this.#backlog.shift(); parcel; parcel = this.#backlog.shift()) {
      if (parcel.retain || this.#hearing.allows(parcel.channel)) return parcel;
      this.#takeBack(parcel);
    }
    return undefined;
  }

  /** Out of memory, onto the disk, for the backlog to find. */
  #putDown(live: Live, soon_ms = lazy_commit_ms): void {
    live.place = 'nowhere';
    if (live.disk === 'no') this.#committer.write(live, soon_ms);
    else if (live.disk === 'yes') this.#release([live.row], []);
  }

  /** It did not reach anybody: it will be sent again. */
  #takeBack(parcel: Parcel): void {
    const { content } = parcel;
    for (const live of livesOf(parcel)) this.#putDown(live);
    if (content.kind === 'row') this.#release([content.row], []);
    if (content.kind === 'batch') this.#release([], [content.batch.token], content.batch.lane);
    if (content.kind === 'echo') this.#echo.giveBack(parcel);
  }

  #release(rows: readonly RowRef[], batches: readonly number[], lane = rows[0]?.lane): void {
    // Without a link there is nobody to take them, and `connected` releases everything at once.
    if (!this.#link) return;
    const refs = rows.map(({ id, lane: of }) => ({ id, lane: of }));
    this.#options.client.release({ rows: refs, batches }).catch(this.#options.diskFailed);
    if (lane) this.#backlog.rest(lane);
  }

  #spillInFlight(age_ms: number): void {
    const now_ms = performance.now();
    for (const parcel of this.#in_flight) {
      for (const live of livesOf(parcel)) {
        if (live.disk === 'no' && now_ms - live.since_ms > age_ms) this.#committer.write(live, 0);
      }
    }
  }

  #deliver(parcel: Parcel): void {
    const { content } = parcel;
    for (const live of livesOf(parcel)) this.#letGo(live);
    if (content.kind === 'row') this.#deliverRow(content.row);
    if (content.kind === 'batch') {
      const { token, lane } = content.batch;
      const list = this.#needsCloud(lane) ? 'unconfirmed_batches' : 'delivered_batches';
      this.#committer.add((pending) => pending[list].push(token), sync_commit_ms);
    }
  }

  /** One that is being written is let go when it is on disk. */
  #letGo(live: Live): void {
    live.acked = true;
    if (live.disk === 'yes') this.#deliverRow(live.row);
    else if (live.disk !== 'writing') this.#options.ledger.deliveredFromMemory(1);
  }

  #deliverRow({ id, lane }: RowRef): void {
    const list = this.#needsCloud(lane) ? 'unconfirmed' : 'delivered';
    this.#committer.add((pending) => pending[list].push({ id, lane }), sync_commit_ms);
  }

  #needsCloud(lane: Lane): boolean {
    const { durability, retain } = laneRules[lane];
    if (durability === 'lazy' || retain) return false;
    return this.#ack === 'cloud' || (this.#ack === 'auto' && this.cloud_acks);
  }
}

function livesOf({ content }: Parcel): readonly Live[] {
  if (content.kind === 'live') return [content.live];
  return content.kind === 'packet' ? content.lives : [];
}
