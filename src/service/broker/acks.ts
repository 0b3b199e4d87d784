/** Acknowledges stored messages to each kit, at most once a second per epoch (`contract/README.md`, `down/ack`). */
import { ack_ranges_max, type CloudAck } from '../../contract/tasks.ts';
import { every } from '../../platform/time.ts';
import { joinRanges, type Range } from '../store/received/ranges.ts';
import type { Committed, Store } from '../store/store.ts';

const send_every_ms = 1_000;
/** Newest epochs are read again at this interval: another replica may have stored a newer one. */
const refresh_ms = 60_000;
/** Kits whose newest epoch is remembered, and kits with acknowledgements that wait. */
const kits_max = 100_000;
/** Limit of pending acknowledgements per kit; the kit sends what is beyond it again, which acknowledges it then. */
const epochs_max = 64;
const ranges_max = 20 * ack_ranges_max;

export interface AckParts {
  readonly store: Pick<Store, 'newestEpoch'>;
  /** `isRetained`: the broker keeps it. Rejects when it could not be sent. */
  readonly send: (kit_id: string, ack: CloudAck, isRetained: boolean) => Promise<void>;
  readonly signal: AbortSignal;
}

export class Acks {
  readonly #parts: AckParts;
  /** By kit and epoch: stored ranges that are not acknowledged yet. */
  #due = new Map<string, Map<number, readonly Range[]>>();
  readonly #newest = new Map<string, number>();
  #isSending = false;

  constructor(parts: AckParts) {
    this.#parts = parts;
    every(send_every_ms, parts.signal, () => void this.#sendDue());
    every(refresh_ms, parts.signal, () => this.#newest.clear());
  }

  note(acks: Committed['acks']): void {
    for (const { kit_id, ack } of acks) {
      const { epoch, ranges } = ack;
      const ofKit = this.#due.get(kit_id) ?? new Map<number, readonly Range[]>();
      if (!this.#due.has(kit_id) && this.#due.size >= kits_max) continue;
      this.#due.set(kit_id, ofKit);
      // The highest ones came last, so that the kit remembers sending them.
      ofKit.set(epoch, joinRanges(ofKit.get(epoch) ?? [], ranges).slice(-ranges_max));
      if (ofKit.size > epochs_max) ofKit.delete(Math.min(...ofKit.keys()));
    }
  }

  async #sendDue(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    const due = this.#due;
    this.#due = new Map();
    const sent: Promise<void>[] = [];
    for (const [kit_id, ofKit] of due) {
      const newest = await this.#newestOf(kit_id, Math.max(...ofKit.keys())).catch(() => undefined);
      for (const [epoch, ranges] of ofKit) {
        const isNewest = newest === undefined || epoch >= newest;
        for (const ack of acksOf(epoch, ranges)) {
          const isLowest = ack.ranges[0]?.[0] === ranges[0]?.[0];
          // A lost acknowledgement needs no retry: the kit sends its messages again, which causes the next one.
          sent.push(this.#parts.send(kit_id, ack, isNewest && isLowest).catch(() => undefined));
        }
      }
    }
    await Promise.all(sent);
    this.#isSending = false;
  }

  async #newestOf(kit_id: string, epoch: number): Promise<number> {
    const known = this.#newest.get(kit_id) ?? (await this.#parts.store.newestEpoch(kit_id));
    const newest = Math.max(known, epoch);
    if (this.#newest.size >= kits_max) this.#newest.clear();
    this.#newest.set(kit_id, newest);
    return newest;
  }
}

/** Splits the ranges into messages of the size that a kit accepts, lowest ranges first. */
function acksOf(epoch: number, ranges: readonly Range[]): readonly CloudAck[] {
  const acks: CloudAck[] = [];
  for (let at = 0; at < ranges.length; at += ack_ranges_max) {
    const some = ranges.slice(at, at + ack_ranges_max);
    acks.push({ epoch, ranges: some.map(([first, last]) => [first, last]) });
  }
  return acks;
}
