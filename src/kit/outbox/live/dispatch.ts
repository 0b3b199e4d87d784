/**
 * The interface of the outbox to the uplink: hands messages out in the order of their importance, and releases a message
 * only when the broker has it.
 *
 * A message is in exactly one place at a time: in the live queue or in flight (`hand`), on disk for the backlog to find,
 * or, while the disk refuses, in the next commit.
 */
import { type Lane, laneRules, lanes } from '../../../contract/lanes.ts';
import { channels } from '../../../contract/topics.ts';
import type { AckRule } from '../api.ts';
import { Backlog, type BacklogForm, BatchSize } from './backlog.ts';
import type { CloudAcks } from './cloud-acks.ts';
import { type CommitFailure, type Committer, lazy_commit_ms, sync_commit_ms } from './committer.ts';
import { InFlight, Replay } from './delivery.ts';
import type { DiskState } from './disk-health.ts';
import { Gate, type RefusedKind } from './gate.ts';
import type { Ledger } from './ledger.ts';
import { Moves } from './moves.ts';
import { LiveLanes, RetainedOrder } from './queue.ts';
import {
  type ClockOffset,
  type Live,
  livesOf,
  outgoingId,
  type OutgoingMessage,
  outgoingOfLive,
  outgoingOfPacket,
} from './outgoing.ts';
import type { Stored } from '../protocol.ts';
import type { Row, RowId } from '../row.ts';
import type { StoreClient } from './store-client.ts';
import { texts } from '../texts.ts';

const packet_rows_max = 500;
/** While live telemetry never ends, the backlog still gets every so many-th place. */
const backlog_share = 10;
/** Acknowledged rows whose deletion waits for the disk; while there are so many, the backlog is not read. */
const refs_max = 20_000;

const sync_lanes = lanes.filter((lane) => laneRules[lane].durability === 'sync');

/** Whether the broker keeps it for later subscribers; a removal is for present ones. */
function isKept({ row: { lane, body } }: Live): boolean {
  return laneRules[lane].retain && body !== 'null';
}

/** Monotonic time. */
const now = (): number => performance.now();
/** A lazy message that the broker has not acknowledged by then goes to the disk: with a sweep and a commit, within 1.25 s. */
const spill_after_ms = 800;
/** While a commit is unanswered for longer, sync messages do not wait for it: well before the disk counts as failing. */
const late_commit_ms = 1_000;
/** MQTT 5 section 2.4: the only reason code that concerns a single message. */
const packet_too_large = 0x95;
const unspecified_error = 0x80;

interface Connected {
  /** The broker remembers us, so what it acknowledged is not lost. */
  readonly session_present: boolean;
  /** Live telemetry leaves in packets of this time; 0: every message at once. */
  readonly packet_ms: number;
  readonly ack: AckRule;
  /** Called when there is something to send. */
  readonly onReady: () => void;
}

interface DispatchOptions {
  readonly client: StoreClient;
  readonly ledger: Ledger;
  readonly committer: Committer;
  readonly disk: DiskState;
  readonly cloud_acks: CloudAcks;
  /** The cloud sent a `down/ack` in an earlier run. */
  readonly hadCloudAcks: boolean;
  readonly form: BacklogForm;
  readonly clockOffset: () => ClockOffset;
  readonly diskFailed: (error: unknown) => void;
  /** The broker has this message. */
  readonly sent: (row: Row) => void;
  readonly log: {
    info(facts: object, sentence: string): void;
    warn(facts: object, sentence: string): void;
  };
}

interface Now {
  /** Whether the backlog may be read. */
  readonly backlog: boolean;
}

export class Dispatch {
  readonly #options: DispatchOptions;
  readonly #backlog: Backlog;
  readonly #gate: Gate;
  readonly #order = new RetainedOrder();
  readonly #replay = new Replay();
  readonly #live = new LiveLanes();
  readonly #in_flight = new InFlight();
  readonly #batch: BatchSize;
  readonly #moves: Moves;
  readonly #quarantine_log: CountedLine;
  #link: Connected | undefined;
  #turn = 0;

  constructor(options: DispatchOptions) {
    const { client, form, ledger, log } = options;
    this.#options = options;
    this.#batch = new BatchSize(form);
    this.#gate = new Gate(now, log);
    this.#quarantine_log = new CountedLine((facts) => log.warn(facts, texts.message_quarantined), now);
    const ready = (): void => this.#ready();
    this.#backlog = new Backlog({
      client,
      form,
      alarms: () => ledger.depth.alarm.rows,
      ready,
      failed: options.diskFailed,
      requeue: (messages) => this.#moves.requeue(messages, { rest: false }),
    });
    const canQueue = (channel: string): boolean => this.#canQueue(channel);
    const queues = { live: this.#live, backlog: this.#backlog, replay: this.#replay, order: this.#order };
    this.#moves = new Moves({ ...options, ...queues, canQueue, ready }, options.hadCloudAcks);
  }

  // --- Accepted messages come in --------------------------------------------------------------------------------

  /** A new message: to the broker at once if its lane allows and it has subscribers, else to the disk. */
  accept(live: Live): void {
    const is_sync = laneRules[live.row.lane].durability === 'sync';
    this.#moves.move([live], 'accepted', is_sync ? sync_commit_ms : lazy_commit_ms);
  }

  /** A commit takes these now. Returns the rows that stay in memory, to be sent as soon as they are on disk. */
  commitBegan(lives: readonly Live[]): readonly RowId[] {
    this.#moves.move(lives, 'commit_began');
    return lives.filter(({ state }) => state.is_held).map(({ row }) => row.id);
  }

  /** These rows are on disk now. */
  written(lives: readonly Live[]): void {
    this.#moves.move(lives, 'written');
  }

  /** The disk refused these rows, or does not answer: they go out from memory if they may, with all that waits. */
  unwritten(lives: readonly Live[], event: CommitFailure): void {
    this.#moves.move(lives, event);
    this.sendUnwritten();
  }

  /** The disk fails: sends the rows that wait for it from memory. */
  sendUnwritten(): void {
    this.#moves.move(this.#options.committer.unwritten, 'disk_away');
  }

  /** The disk is late: sync messages leave from memory, and are written all the same. */
  #sendLate(): void {
    const { unwritten } = this.#options.committer;
    this.#moves.move(
      unwritten.filter(({ row }) => laneRules[row.lane].durability === 'sync'),
      'disk_away',
    );
  }

  // --- The uplink takes them out --------------------------------------------------------------------------------

  /** The connection is up. */
  connected(link: Connected): void {
    const { cloud_acks, disk } = this.#options;
    this.#moves.ack = link.ack;
    this.#gate.connected();
    this.#replay.hasCloudAcks = this.#moves.needsCloud('feed');
    this.#replay.connected(link);
    this.#link = link;
    if (!link.session_present) void cloud_acks.sessionLost();
    if (disk.isFailing) this.sendUnwritten();
    this.#backlog.open();
    this.#ready();
  }

  /** Live telemetry leaves in packets of this time from now on; 0: every message at once. */
  setPacketMs(packet_ms: number): void {
    if (!this.#link || this.#link.packet_ms === packet_ms) return;
    this.#link = { ...this.#link, packet_ms };
    this.#ready();
  }

  get is_connected(): boolean {
    return this.#link !== undefined;
  }

  /** The connection is gone: what was in flight is sent again. */
  disconnected(): void {
    this.#link = undefined;
    this.#moves.requeue([...this.#in_flight.drain(), ...this.#backlog.close()]);
    this.spillAll();
  }

  /** The next message to publish, or undefined when there is none now. `backlog: false` leaves the buffer alone. */
  next(how: Now): OutgoingMessage | undefined {
    if (!this.#link) return undefined;
    const outgoing = this.#select(how, this.#link.packet_ms);
    if (outgoing) this.#in_flight.add(outgoing);
    return outgoing;
  }

  /** The broker acknowledged it. `hasSubscribers: false`: no matching subscribers (PUBACK 0x10). */
  acknowledged(outgoing: OutgoingMessage, { hasSubscribers }: { readonly hasSubscribers: boolean }): void {
    if (!this.#in_flight.has(outgoing)) return;
    const stored = this.#in_flight.remove(outgoing);
    if (!this.#gate.acknowledged(outgoing, hasSubscribers)) {
      this.#moves.requeue([outgoing]);
      return;
    }
    this.#moves.acknowledged(outgoing, stored);
    if (outgoing.backlog) this.#batch.accepted();
    if (!this.#isKept(outgoing)) this.#replay.remember(outgoing, now());
  }

  /** It was not taken this time and may be handed out again. */
  requeue(outgoing: OutgoingMessage): void {
    if (!this.#in_flight.has(outgoing)) return;
    this.#in_flight.remove(outgoing);
    this.#moves.requeue([outgoing]);
  }

  /** How many rows fit one batch on this link, unless the broker has set a lower limit. */
  setBatchRows(rows: number): void {
    this.#batch.set(this.#gate.isRefused(channels.batch) ? 1 : rows);
  }

  /**
   * The broker refused it by reason code. Unless the message itself is at fault, it is kept, and its kind of topic is paused
   * when there are more such refusals.
   */
  refused(outgoing: OutgoingMessage, code: number, reason: string): void {
    const isAtFault = code === packet_too_large || this.#gate.refused(outgoing, code, reason) === 'message';
    if (isAtFault) this.quarantine(outgoing, code, reason);
    else this.requeue(outgoing);
    // Without batches, messages of the backlog are sent on their original topics, which may be allowed.
    if (this.#gate.isRefused(channels.batch)) this.#batch.set(1);
  }

  /**
   * The broker hung up when this was sent alone, on a connection that had worked before. As with refusals by reason code,
   * its kind of topic is paused unless only this message is at fault. To split a batch costs nothing and needs no proof.
   */
  hungUp(outgoing: OutgoingMessage, reason: string): void {
    const { kind } = outgoing.content;
    const isAtFault =
      kind === 'batch' || kind === 'packet' || this.#gate.hungUp(outgoing, reason) === 'message';
    if (isAtFault) this.quarantine(outgoing, unspecified_error, reason);
  }

  /** The broker will never take this very message: it goes to the quarantine with the reason. A batch is split instead. */
  quarantine(outgoing: OutgoingMessage, code: number, reason: string): void {
    if (!this.#in_flight.has(outgoing)) return;
    this.#in_flight.remove(outgoing);
    const { content } = outgoing;
    switch (content.kind) {
      case 'replay':
        return;
      case 'batch':
      case 'packet':
        this.#batch.shrink(outgoing.rows);
        this.#options.log.warn({ code, reason, batch_rows: this.#batch.rows }, texts.batch_refused);
        this.#moves.requeue([outgoing]);
        return;
      case 'live':
      case 'row':
        this.#withdraw(content, code, reason);
        return;
      default:
        content satisfies never;
    }
  }

  /** A row that is in memory only goes through the disk into the quarantine, so that the books need no second way. */
  #withdraw(
    content: Extract<OutgoingMessage['content'], { kind: 'live' | 'row' }>,
    code: number,
    reason: string,
  ): void {
    const row = content.kind === 'live' ? content.live.row : content.row;
    this.#quarantine_log.write({ channel: row.channel, code, reason });
    if (content.kind === 'live') this.#moves.move([content.live], 'spilled');
    this.#options.committer.quarantine(row, code, reason, lazy_commit_ms);
  }

  /** The cloud has stored these: what is in flight among them needs no further acknowledgement after its PUBACK. */
  cloudStored(stored: Stored): void {
    this.#moves.cloud_acks = true;
    this.#replay.hasCloudAcks = this.#moves.needsCloud('feed');
    this.#replay.cloudStored(stored);
    this.#in_flight.cloudStored(stored);
    this.#moves.confirmed(stored);
    this.#options.cloud_acks.add(stored);
  }

  // --- Timers ---------------------------------------------------------------------------------------------------

  /** Sends what has waited too long to the disk; while the disk refuses, what has no room in memory is dropped. */
  sweep(): void {
    const disk = !this.#options.disk.isFailing;
    const patience_ms = spill_after_ms + (this.#link?.packet_ms ?? 0);
    const overdue = this.#live.shiftOverdue(now(), disk ? patience_ms : Infinity);
    this.#moves.move(overdue, disk ? 'taken_back' : 'overflowed', 0);
    if (disk) this.#spillInFlight(patience_ms);
    else if (this.#link) this.sendUnwritten();
    if (disk && this.#link && this.#options.committer.unanswered_ms > late_commit_ms) this.#sendLate();
    this.#replay.forget(now());
    this.#gate.tick();
    this.#quarantine_log.tick();
    this.#backlog.wake();
    this.#ready();
  }

  /** Writes everything that waits in memory. */
  spillAll(): void {
    this.#moves.move(this.#live.drain(), 'taken_back');
  }

  /** Kinds of topics without subscribers of which messages are kept. */
  withoutSubscribers(): readonly string[] {
    const { ledger, committer } = this.#options;
    return this.#gate.withoutSubscribers((lane) => ledger.depth[lane].rows > 0 || committer.writes(lane));
  }

  /** The file of an earlier run, which could not be read at the start, names a `down/ack`. */
  cloudAckFound(): void {
    this.#moves.cloud_acks = true;
  }

  /** Kinds of topics that the broker refuses now. */
  refusedKinds(): readonly RefusedKind[] {
    return this.#gate.refusedKinds();
  }

  /** Which acknowledgement counts: whether the cloud has sent any, and to whom messages count as delivered. */
  get delivery(): Pick<Moves, 'cloud_acks' | 'delivered_to'> {
    return this.#moves;
  }

  /** Messages of this run that wait in memory for the broker. */
  get live_rows(): number {
    return this.#live.rows;
  }

  /** Characters of their bodies. */
  get live_chars(): number {
    return this.#live.chars;
  }

  liveRows(lane: Lane): number {
    return this.#live.rowsOf(lane);
  }

  /** Rows of every lane may have come back from the store's side: quarantine, unconfirmed. */
  touchAll(): void {
    for (const lane of lanes) this.#backlog.touched(lane);
  }

  // --- Within ---------------------------------------------------------------------------------------------------

  /** The most important lanes, then replayed messages, then live telemetry beside the backlog; undefined when there is none now. */
  #select(how: Now, packet_ms: number): OutgoingMessage | undefined {
    for (;;) {
      const urgent = this.#nextLive(() => this.#live.shiftUrgent());
      const outgoing = urgent ?? this.#nextReplay() ?? this.#nextShared(how, packet_ms);
      if (!outgoing || this.#order.admits(outgoing)) return outgoing;
      this.#moves.supersede(outgoing);
    }
  }

  #nextShared({ backlog }: Now, packet_ms: number): OutgoingMessage | undefined {
    this.#turn = (this.#turn + 1) % backlog_share;
    const first = backlog && this.#turn === 0 ? this.#nextBacklog() : undefined;
    const telemetry = first ?? this.#nextTelemetry(packet_ms);
    return telemetry ?? (backlog ? (this.#nextBehind() ?? this.#nextBacklog()) : undefined);
  }

  /** While a message that is on disk first waits for the disk, what may belong to it waits too. */
  #nextBehind(): OutgoingMessage | undefined {
    const isOvertaking = sync_lanes.some((lane) => this.#options.committer.writes(lane));
    return isOvertaking ? undefined : this.#nextLive(() => this.#live.shiftBehind());
  }

  #nextReplay(): OutgoingMessage | undefined {
    const outgoing = this.#replay.shift();
    if (!outgoing || this.#isAllowed(outgoing)) return outgoing;
    this.#replay.requeue(outgoing);
    return undefined;
  }

  #nextTelemetry(packet_ms: number): OutgoingMessage | undefined {
    if (packet_ms === 0 || this.#batch.rows === 1) return this.#nextLive(() => this.#live.shiftTelemetry());
    const rows_max = Math.min(packet_rows_max, this.#batch.rows);
    const lives = this.#live.shiftPacket(now(), packet_ms, rows_max);
    this.#moves.move(lives, 'handed_out');
    return lives.length > 0 ? outgoingOfPacket(lives, this.#options.clockOffset()) : undefined;
  }

  #nextLive(shift: () => Live | undefined): OutgoingMessage | undefined {
    for (let live = shift(); live; live = shift()) {
      const isAllowed = this.#gate.allows(live.row.channel, live.row.id, isKept(live));
      this.#moves.move([live], isAllowed ? 'handed_out' : 'taken_back');
      if (isAllowed) return outgoingOfLive(live, this.#options.clockOffset());
    }
    return undefined;
  }

  #nextBacklog(): OutgoingMessage | undefined {
    // While the disk refuses, what is delivered cannot be deleted: the memory for that is bounded.
    if (this.#options.committer.refs >= refs_max) return undefined;
    const kept: OutgoingMessage[] = [];
    let outgoing = this.#backlog.shift();
    for (; outgoing && !this.#isAllowed(outgoing); outgoing = this.#backlog.shift()) kept.push(outgoing);
    this.#moves.requeue(kept);
    return outgoing;
  }

  #isAllowed(outgoing: OutgoingMessage): boolean {
    return this.#gate.allows(outgoing.channel, outgoingId(outgoing), outgoing.retain);
  }

  /** There is a connection, room in memory, and no pause of its kind of topic. */
  #canQueue(channel: string): boolean {
    if (this.#link === undefined || this.#live.full) return false;
    return !this.#gate.rests(channel);
  }

  /** What is not remembered: it was sent a second time to a cloud that does not acknowledge, or the disk keeps it until it does. */
  #isKept({ lane, content: { kind } }: OutgoingMessage): boolean {
    if (kind === 'replay') return !this.#replay.hasCloudAcks;
    return (kind === 'row' || kind === 'batch') && this.#moves.needsCloud(lane);
  }

  #ready(): void {
    this.#link?.onReady();
  }

  #spillInFlight(age_ms: number): void {
    const now_ms = now();
    for (const outgoing of this.#in_flight.messages()) {
      const late = livesOf(outgoing).filter(({ since_ms }) => now_ms - since_ms > age_ms);
      this.#moves.move(late, 'spilled', 0);
    }
  }
}

/** A log line that may be due very often: the first is written at once, what follows soon is counted and written as one. */
const pause_ms = 60_000;

export class CountedLine {
  readonly #write: (facts: object) => void;
  readonly #now: () => number;
  #quiet_until_ms = Number.NEGATIVE_INFINITY;
  #messages = 0;
  #last: object = {};

  constructor(write: (facts: object) => void, now: () => number) {
    this.#write = write;
    this.#now = now;
  }

  write(facts: object): void {
    if (this.#now() >= this.#quiet_until_ms) {
      this.#quiet_until_ms = this.#now() + pause_ms;
      this.#write({ ...facts, messages: this.#messages + 1 });
      this.#messages = 0;
      return;
    }
    this.#messages += 1;
    this.#last = facts;
  }

  /** Writes what was counted, once the pause is over. */
  tick(): void {
    if (this.#messages === 0 || this.#now() < this.#quiet_until_ms) return;
    this.#quiet_until_ms = this.#now() + pause_ms;
    this.#write({ ...this.#last, messages: this.#messages });
    this.#messages = 0;
  }
}
