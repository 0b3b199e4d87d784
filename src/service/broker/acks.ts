/** Tells each kit what is stored, at most once a second for each epoch (`contract/README.md`, `down/ack`). */
import type { CloudAck } from '../../contract/tasks.ts';
import { every } from '../../platform/time.ts';
import type { Store } from '../store/store.ts';

const tell_every_ms = 1_000;
/** Another replica may have stored a newer epoch meanwhile. */
const look_again_ms = 60_000;
/** Kits whose newest epoch is remembered. */
const kits_max = 100_000;

export interface AckParts {
  readonly store: Pick<Store, 'acks'>;
  /** `isNewest`: the broker keeps it. Rejects when it could not be sent. */
  readonly send: (kit_id: string, ack: CloudAck, isNewest: boolean) => Promise<void>;
  readonly signal: AbortSignal;
}

export class Acks {
  readonly #parts: AckParts;
  /** By kit and epoch: the newest one. */
  #due = new Map<string, Map<number, CloudAck>>();
  readonly #newest = new Map<string, number>();
  #isTelling = false;

  constructor(parts: AckParts) {
    this.#parts = parts;
    every(tell_every_ms, parts.signal, () => void this.#tell());
    every(look_again_ms, parts.signal, () => this.#newest.clear());
  }

  note(acks: readonly { readonly kit_id: string; readonly ack: CloudAck }[]): void {
    for (const { kit_id, ack } of acks) {
      const ofKit = this.#due.get(kit_id) ?? new Map<number, CloudAck>();
      this.#due.set(kit_id, ofKit.set(ack.epoch, ack));
    }
  }

  async #tell(): Promise<void> {
    if (this.#isTelling) return;
    this.#isTelling = true;
    const due = this.#due;
    this.#due = new Map();
    const sent: Promise<void>[] = [];
    for (const [kit_id, ofKit] of due) {
      const newest = await this.#newestOf(kit_id, Math.max(...ofKit.keys())).catch(() => undefined);
      for (const ack of ofKit.values()) {
        const isNewest = newest === undefined || ack.epoch >= newest;
        // One that gets lost is made good by the next: the kit asks again by sending its messages again.
        sent.push(this.#parts.send(kit_id, ack, isNewest).catch(() => undefined));
      }
    }
    await Promise.all(sent);
    this.#isTelling = false;
  }

  async #newestOf(kit_id: string, epoch: number): Promise<number> {
    const known = this.#newest.get(kit_id) ?? (await this.#parts.store.acks(kit_id))[0]?.epoch ?? 0;
    const newest = Math.max(known, epoch);
    if (this.#newest.size >= kits_max) this.#newest.clear();
    this.#newest.set(kit_id, newest);
    return newest;
  }
}
