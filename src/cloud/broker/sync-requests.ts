/**
 * Requests a full publication (`down/sync`) from kits that are new to this database, and from kits that send messages
 * without a known online presence, as with a broker that delivers no retained messages to a new subscriber.
 */
import { everyInTurn } from '../../platform/time.ts';
import type { Committed } from '../stored/stored.ts';

const tick_ms = 1_000;
/** Requests per tick: each answer contains all retained messages of a kit and its telemetry. */
const requests_max = 50;
/** Time for a birth in flight to arrive. */
const wait_ms = 5_000;
/** After the first request; then four times as long each time. A kit of contract 1.0 does not answer with its state. */
const pause_ms = { first: 60_000, factor: 4, max: 3_600_000 } as const;
/** Kits that are tracked; the oldest is evicted. */
const kits_max = 100_000;

export interface SyncParts {
  readonly isOnline: (kit_id: string) => Promise<boolean>;
  /** Rejects when it could not be sent. */
  readonly request: (kit_id: string) => Promise<void>;
  readonly signal: AbortSignal;
}

interface Asked {
  isNew: boolean;
  /** Time of the next request. */
  next_ms: number;
  /** Pause between the next request and the one after it. */
  pause_ms: number;
}

export class SyncRequests {
  readonly #parts: SyncParts;
  readonly #asked = new Map<string, Asked>();
  readonly #wanted = new Set<string>();

  constructor(parts: SyncParts) {
    this.#parts = parts;
    everyInTurn(tick_ms, parts.signal, async () => this.#ask());
  }

  note({ new_kits, without_presence }: Pick<Committed, 'new_kits' | 'without_presence'>): void {
    const now_ms = performance.now();
    for (const kit_id of without_presence) this.#want(kit_id, now_ms + wait_ms);
    for (const kit_id of new_kits) {
      const asked = this.#want(kit_id, now_ms);
      asked.isNew = true;
      asked.next_ms = now_ms;
    }
  }

  #want(kit_id: string, next_ms: number): Asked {
    const asked = this.#asked.get(kit_id) ?? { isNew: false, next_ms, pause_ms: pause_ms.first };
    if (!this.#asked.has(kit_id)) {
      // Only when it is full: to find the first key, a map passes over the deleted ones.
      const [oldest] = this.#asked.size < kits_max ? [] : this.#asked.keys();
      if (oldest !== undefined) this.#forget(oldest);
      this.#asked.set(kit_id, asked);
    }
    this.#wanted.add(kit_id);
    return asked;
  }

  #forget(kit_id: string): void {
    this.#asked.delete(kit_id);
    this.#wanted.delete(kit_id);
  }

  async #ask(): Promise<void> {
    const now_ms = performance.now();
    let left = requests_max;
    for (const kit_id of this.#wanted) {
      const asked = this.#asked.get(kit_id);
      if (left === 0) break;
      if (!asked || asked.next_ms > now_ms) continue;
      left -= 1;
      await this.#askKit(kit_id, asked, now_ms);
    }
  }

  /** A request that could not be sent is retried after the next message of the kit. */
  async #askKit(kit_id: string, asked: Asked, now_ms: number): Promise<void> {
    const { isOnline, request } = this.#parts;
    this.#wanted.delete(kit_id);
    try {
      if (!asked.isNew && (await isOnline(kit_id))) {
        this.#forget(kit_id);
        return;
      }
      asked.isNew = false;
      asked.next_ms = now_ms + asked.pause_ms;
      asked.pause_ms = Math.min(asked.pause_ms * pause_ms.factor, pause_ms.max);
      await request(kit_id);
    } catch {
      asked.next_ms = now_ms + pause_ms.first;
    }
  }
}
