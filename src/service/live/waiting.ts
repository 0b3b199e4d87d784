/**
 * What all sockets together hold of changes that their readers have not taken yet. A kit may have 2,048 feeds of 64 KiB, and a socket
 * may follow 64 kits: a single slow reader would fill the memory. Beyond the limit those who hold most forget their changes and get a
 * new snapshot once they read again; no socket is closed, and readers that keep up hold next to nothing.
 */
import type { Json } from '../../contract/json.ts';
import type { ServiceLog } from '../service-log.ts';
import type { Change } from '../store/store.ts';
import { texts } from '../texts.ts';

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
