/** Collects what a socket has to send about one kit: a snapshot first, then the newest value of each thing that changed. */
import type { Change } from '../stored/stored.ts';
import { turnsAt } from '../api/views.ts';
import type { Changes } from '../changes.ts';
import type { InTurn } from '../../platform/semaphore.ts';
import { type FrameBody, framesOf, keyOf, type Late, lateFramesOf, snapshotOf } from './snapshot.ts';
import type { Json } from '../../contract/json.ts';
import type { ServiceLog } from '../service-log.ts';
import { texts } from '../texts.ts';
import type { Store } from '../store/sql-store.ts';

/** Minimum interval of timed updates, for a clock that was set so that they would follow at once. */
const turn_ms_min = 250;
/** Changed things that wait for a slow reader; beyond it a new snapshot replaces them. */
export const pending_max = 4_096;

/** What a follower needs of its socket. */
export interface Following {
  /** Waits for the turn of the key before a snapshot or a part of a list is read. */
  readonly inTurn: InTurn;
  /** Called when something is due. */
  readonly wake: () => void;
  /** Ends the subscription. */
  readonly signal: AbortSignal;
}

export interface KitFollowerParts extends Following {
  readonly kit_id: string;
  /** Ids of the subscribed assets; `*`: all. */
  readonly wanted: ReadonlySet<string> | '*';
  readonly store: Store;
  readonly changes: Changes;
  /** Limits what all followers hold together. */
  readonly waiting: Waiting;
}

export class KitFollower {
  readonly #parts: KitFollowerParts;
  readonly #pending = new Map<string, Change>();
  #snapshot_due = true;
  /** What the last snapshot had no room for. */
  #late: readonly Late[] = [];
  /** Sends the kit again when it times out or its fix becomes stale, since no message triggers that. */
  #turn: NodeJS.Timeout | undefined;

  constructor(parts: KitFollowerParts) {
    this.#parts = parts;
    const { kit_id, changes, signal } = parts;
    changes.subscribe(kit_id, (news) => this.#note(news), signal);
    const end = (): void => {
      clearTimeout(this.#turn);
      this.#forget();
    };
    signal.addEventListener('abort', end, { once: true });
  }

  get kit_id(): string {
    return this.#parts.kit_id;
  }

  /** Forgets the changes that wait; a new snapshot replaces them. */
  giveWay(): void {
    this.#forget();
    this.#snapshot_due = true;
  }

  get isDue(): boolean {
    return (
      !this.#parts.signal.aborted && (this.#snapshot_due || this.#late.length > 0 || this.#pending.size > 0)
    );
  }

  /** Returns the frames of the next due thing. */
  async next(): Promise<readonly FrameBody[]> {
    const frames = await this.#read();
    for (const frame of frames) if ('kit' in frame) this.#expectTurn(frame.kit);
    return frames;
  }

  async #read(): Promise<readonly FrameBody[]> {
    const { store, kit_id, wanted, inTurn } = this.#parts;
    const wants = (asset_id: string): boolean => wanted === '*' || wanted.has(asset_id);
    if (this.#snapshot_due) {
      return inTurn(async () => {
        // The subscription has ended.
        if (this.#parts.signal.aborted) return [];
        this.#snapshot_due = false;
        const { frame, late } = await snapshotOf(store, kit_id, wants);
        this.#late = late;
        return [frame];
      });
    }
    const [late, ...others] = this.#late;
    if (late) {
      const { frames, rest } = await lateFramesOf(store, kit_id, late);
      this.#late = rest ? [rest, ...others] : others;
      return frames;
    }
    const [next] = this.#pending;
    if (!next) return [];
    this.#take(next[0], next[1]);
    return framesOf(store, next[1], wants);
  }

  #note(news: readonly Change[]): void {
    for (const change of news) this.#keep(change);
    this.#parts.wake();
  }

  #keep(change: Change): void {
    if (change.kind === 'kit_gone') {
      this.#forget();
      this.#late = [];
      this.#snapshot_due = false;
    }
    // The snapshot will have it.
    if (this.#snapshot_due) return;
    const key = keyOf(change);
    const older = this.#pending.get(key);
    this.#pending.set(key, change);
    if (this.#pending.size > pending_max) this.giveWay();
    else this.#parts.waiting.add(this, bytesOf(change) - (older ? bytesOf(older) : 0));
  }

  #take(key: string, change: Change): void {
    this.#pending.delete(key);
    this.#parts.waiting.add(this, -bytesOf(change));
  }

  #forget(): void {
    this.#pending.clear();
    this.#parts.waiting.clear(this);
  }

  #expectTurn(kit: Parameters<typeof turnsAt>[0]): void {
    clearTimeout(this.#turn);
    const now_ms = Date.now();
    const turn_ms = turnsAt(kit, now_ms);
    if (turn_ms === undefined || this.#parts.signal.aborted) return;
    const { kit_id } = this.#parts;
    const wait_ms = Math.max(turn_ms_min, turn_ms - now_ms);
    this.#turn = setTimeout(() => this.#note([{ kind: 'kit', kit_id }]), wait_ms);
  }
}

/** Bytes of memory, as `bytesOf` reckons them; what several sockets share counts for each. */
export const waiting_bytes_max = 16 * 1024 * 1024;
/** Once the limit is exceeded, room is made down to this, so that holders are compared seldom. */
const made_room_bytes = waiting_bytes_max / 2;
/** A reader that stays slow exceeds the limit again and again. */
const log_every_ms = 600_000;

/** A value: its object, and its place in what contains it. */
const value_bytes = 64;
/** A change, its key and its place in the map of waiting changes. */
const change_bytes = 384;

export interface Holder {
  readonly kit_id: string;
  /** Forgets the changes that it holds. */
  readonly giveWay: () => void;
}

/**
 * What all sockets together hold of changes that their readers have not taken yet. A kit may have 2,048 feeds of 64 KiB, and a socket
 * may follow 64 kits: a single slow reader would fill the memory. Beyond the limit those who hold most forget their changes and get a
 * new snapshot once they read again; no socket is closed, and readers that keep up hold next to nothing.
 */
export class Waiting {
  readonly #log: ServiceLog;
  readonly #held = new Map<Holder, number>();
  #total = 0;
  #logged_ms = Number.NEGATIVE_INFINITY;

  constructor(log: ServiceLog) {
    this.#log = log;
  }

  /** Notes that the holder holds so much more, or less. */
  add(holder: Holder, bytes: number): void {
    this.#held.set(holder, (this.#held.get(holder) ?? 0) + bytes);
    this.#total += bytes;
    if (this.#total > waiting_bytes_max) this.#makeRoom();
  }

  /** Notes that the holder holds nothing. */
  clear(holder: Holder): void {
    this.#total -= this.#held.get(holder) ?? 0;
    this.#held.delete(holder);
  }

  #makeRoom(): void {
    const heaviest = [...this.#held].sort(([, a], [, b]) => b - a);
    const now_ms = performance.now();
    if (now_ms - this.#logged_ms > log_every_ms) {
      this.#logged_ms = now_ms;
      this.#log.warn({ kit_id: heaviest[0]?.[0].kit_id, bytes: this.#total }, texts.log_slow_readers);
    }
    for (const [holder] of heaviest) {
      if (this.#total <= made_room_bytes) return;
      this.clear(holder);
      holder.giveWay();
    }
  }
}

/** Of changes that several sockets wait for. */
const known = new WeakMap<Change, number>();

/** The memory that a change takes, roughly. */
export function bytesOf(change: Change): number {
  if (change.kind !== 'feed' && change.kind !== 'task') return change_bytes;
  const held = change.kind === 'feed' ? change.message.data : [change.task.payload, change.task.result];
  const bytes = known.get(change) ?? change_bytes + bytesOfValue(held);
  known.set(change, bytes);
  return bytes;
}

/** Empty arrays and objects take twenty times their text. The depth of a message is bounded. */
function bytesOfValue(value: Json | undefined): number {
  if (typeof value === 'string') return value_bytes + 2 * value.length;
  if (typeof value !== 'object' || value === null) return value_bytes;
  let bytes = value_bytes;
  if (Array.isArray(value)) for (const each of value as readonly Json[]) bytes += bytesOfValue(each);
  else for (const [key, each] of Object.entries(value)) bytes += key.length + bytesOfValue(each);
  return bytes;
}
