/** Acknowledges stored messages to each kit, at most once a second per epoch (`contract/README.md`, `down/ack`). */
import { ack_ranges_max, type CloudAck } from '../../contract/tasks.ts';
import { every, everyInTurn } from '../../platform/time.ts';
import type { ServiceLog } from '../service-log.ts';
import { joinRanges, type Range } from '../stored/received/ranges.ts';
import type { Committed } from '../stored/stored.ts';
import { MessageRefused } from './cloud-link.ts';
import { texts } from '../texts.ts';
import type { Store } from '../store/sql-store.ts';

const send_every_ms = 1_000;
/** Newest epochs are read again at this interval: another replica may have stored a newer one. The broker may accept more, too. */
const refresh_ms = 60_000;
/** Kits whose newest epoch is remembered, and kits with acknowledgements that wait. */
const kits_max = 100_000;
/** Limit of pending acknowledgements per kit; the kit sends what is beyond it again, which acknowledges it then. */
const epochs_max = 64;
const ranges_max = 20 * ack_ranges_max;
/** 2.4 kB at most. A broker of MQTT 3.1.1 drops what is too large, or closes the connection, and reports neither limit nor refusal. */
const ranges_unreported = 100;

export interface AckParts {
  readonly store: Pick<Store, 'newestEpoch'>;
  readonly log: Pick<ServiceLog, 'warn'>;
  /** `isRetained`: the broker keeps it. Rejects with `MessageRefused` when the broker did not accept it, else when it could not be sent. */
  readonly send: (kit_id: string, ack: CloudAck, isRetained: boolean) => Promise<void>;
  /** Whether the broker reports that a message is too large: only with MQTT 5. */
  readonly reportsRefusals: () => boolean;
  readonly signal: AbortSignal;
}

export class Acks {
  readonly #parts: AckParts;
  /** By kit and epoch: stored ranges that are not acknowledged yet. */
  #due = new Map<string, Map<number, readonly Range[]>>();
  readonly #newest = new Map<string, number>();
  /** Ranges of one message: fewer once the broker refused a larger one (Maximum Packet Size of MQTT 5). */
  #ranges_fit = ack_ranges_max;
  #isRefusalLogged = false;

  constructor(parts: AckParts) {
    this.#parts = parts;
    everyInTurn(send_every_ms, parts.signal, async () => this.#sendDue());
    every(refresh_ms, parts.signal, () => {
      this.#newest.clear();
      this.#ranges_fit = ack_ranges_max;
      this.#isRefusalLogged = false;
    });
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
    const due = this.#due;
    this.#due = new Map();
    const sent: Promise<void>[] = [];
    const size = this.#parts.reportsRefusals() ? this.#ranges_fit : ranges_unreported;
    for (const [kit_id, ofKit] of due) {
      const newest = await this.#newestOf(kit_id, Math.max(...ofKit.keys())).catch(() => undefined);
      for (const [epoch, ranges] of ofKit) {
        const isNewest = newest === undefined || epoch >= newest;
        for (const [n, some] of parted(ranges, size).entries())
          sent.push(this.#send(kit_id, ackOf(epoch, some), isNewest && n === 0));
      }
    }
    await Promise.all(sent);
  }

  /** Sends it, or the halves of what the broker finds too large. Never rejects. */
  async #send(kit_id: string, ack: CloudAck, isRetained: boolean): Promise<void> {
    const { send, log } = this.#parts;
    try {
      await send(kit_id, ack, isRetained);
    } catch (error) {
      // A lost one needs no retry: the kit sends its messages again, which causes the next one.
      if (!(error instanceof MessageRefused)) return;
      const { epoch, ranges } = ack;
      if (error.isTooLarge && ranges.length > 1) {
        const half = Math.ceil(ranges.length / 2);
        this.#ranges_fit = Math.min(this.#ranges_fit, half);
        for (const [n, some] of parted(ranges, half).entries())
          await this.#send(kit_id, ackOf(epoch, some), isRetained && n === 0);
        return;
      }
      if (this.#isRefusalLogged) return;
      this.#isRefusalLogged = true;
      const facts = { kit_id, epoch, reason: error.message };
      log.warn(facts, texts.log_ack_refused);
    }
  }

  async #newestOf(kit_id: string, epoch: number): Promise<number> {
    const known = this.#newest.get(kit_id) ?? (await this.#parts.store.newestEpoch(kit_id));
    const newest = Math.max(known, epoch);
    if (this.#newest.size >= kits_max) this.#newest.clear();
    this.#newest.set(kit_id, newest);
    return newest;
  }
}

/** Parts of at most `size` ranges, lowest ranges first. */
function parted(ranges: readonly Range[], size: number): readonly (readonly Range[])[] {
  const parts: (readonly Range[])[] = [];
  for (let at = 0; at < ranges.length; at += size) parts.push(ranges.slice(at, at + size));
  return parts;
}

function ackOf(epoch: number, ranges: readonly Range[]): CloudAck {
  return { epoch, ranges: ranges.map(([first, last]) => [first, last]) };
}
