/** The cloud's acknowledgements: their way to the store, and what is sent again because none came. */
import type { Stored } from '../protocol.ts';
import type { Ledger } from './ledger.ts';
import { joined, type Range } from '../ack-ranges.ts';
import type { OutboxLog } from '../api.ts';
import { texts } from '../texts.ts';
import type { StoreClient } from './store-client.ts';
import type { Committer } from './committer.ts';
import type { Numbering } from './numbering.ts';

/** Epochs with ranges that wait; the lowest are forgotten. The cloud names again what the kit sends again. */
const epochs_max = 16;
/** Ranges of one epoch that wait; the lowest are forgotten. */
const ranges_max = 10_000;

interface CloudAcksParts {
  readonly client: Pick<StoreClient, 'confirm' | 'resendUnconfirmed'>;
  readonly committer: Pick<Committer, 'settled'>;
  readonly ledger: Pick<Ledger, 'committed'>;
  readonly numbering: Pick<Numbering, 'used'>;
  readonly dispatch: () => { readonly is_connected: boolean; readonly touchAll: () => void };
  readonly failed: (error: unknown) => void;
  readonly log: Pick<OutboxLog, 'warn'>;
  /** Monotonic time. */
  readonly now: () => number;
}

/**
 * The `down/ack` messages on their way to the store, and what is sent again because none came. They are taken in at any pace without
 * waiting for the disk: what came while one was being applied is joined, and goes next.
 */
export class CloudAcks {
  readonly #parts: CloudAcksParts;
  readonly #resending: Resending;
  readonly #waiting = new Map<number, readonly Range[]>();
  #isBusy = false;
  /** An acknowledgement that cannot be about our messages is logged once: it comes again with every connection. */
  #is_ignored_logged = false;

  constructor(parts: CloudAcksParts) {
    this.#parts = parts;
    this.#resending = new Resending(parts.now);
  }

  /** Never waits. */
  add({ epoch, ranges }: Stored): void {
    const known = this.#waiting.get(epoch) ?? [];
    this.#waiting.set(epoch, joined([...known, ...ranges]).slice(-ranges_max));
    if (this.#waiting.size > epochs_max) this.#waiting.delete(Math.min(...this.#waiting.keys()));
    void this.retry();
  }

  /** Applies pending acknowledgements; to be repeated after a failed disk write. */
  async retry(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      for (let [epoch] = this.#waiting.keys(); epoch !== undefined; [epoch] = this.#waiting.keys()) {
        // The store releases only what it knows that the broker has.
        await this.#parts.committer.settled(0);
        const ranges = this.#waiting.get(epoch) ?? [];
        this.#waiting.delete(epoch);
        await this.#apply({ epoch, ranges });
      }
    } catch (error) {
      this.#parts.failed(error);
    } finally {
      this.#isBusy = false;
    }
  }

  /** To be called now and then: sends again, in time, what the broker acknowledged and the cloud did not. */
  async tick(): Promise<void> {
    const due = this.#parts.dispatch().is_connected ? this.#resending.begin() : undefined;
    if (due) this.#resending.resent(await this.#resend(due));
  }

  /** The broker has forgotten what it acknowledged, and perhaps also what the cloud has not read yet. */
  async sessionLost(): Promise<void> {
    // What the broker acknowledged a moment ago is unconfirmed with the next commit.
    await this.#parts.committer.settled(0).catch(() => undefined);
    await this.#resend({ older_than_ms: 0, lazy: true });
  }

  /** Releases from the store what the cloud has acknowledged. Rejects when the disk refuses it; then nothing was released. */
  async #apply(stored: Stored): Promise<void> {
    const { client, ledger, dispatch, numbering, log } = this.#parts;
    const { epoch, ranges } = stored;
    const last_seq = numbering.used(epoch)?.[1];
    const confirmed = await client.confirm({ ...stored, last_seq }).catch((error: unknown) => {
      const since = this.#waiting.get(epoch) ?? [];
      this.#waiting.set(epoch, joined([...ranges, ...since]).slice(-ranges_max));
      throw error;
    });
    ledger.committed(confirmed, 0);
    this.#resending.acked(confirmed.released);
    // Resumes lanes that waited because too many rows were unconfirmed.
    if (confirmed.released > 0) dispatch().touchAll();
    if (!confirmed.ignored || this.#is_ignored_logged) return;
    this.#is_ignored_logged = true;
    log.warn({ epoch, ...confirmed.ignored }, texts.ack_ignored);
  }

  async #resend(due: Due): Promise<number> {
    const { client, dispatch, failed } = this.#parts;
    try {
      const rows = await client.resendUnconfirmed(due);
      if (rows > 0) dispatch().touchAll();
      return rows;
    } catch (error) {
      failed(error);
      return 0;
    }
  }
}

/**
 * When messages that the broker has and the cloud has not confirmed are sent again: after a minute, then ever more rarely as
 * long as that does not help, and at once when the cloud acknowledges again after a silence.
 */
const first_ms = 60_000;
const max_ms = 1_800_000;
/** Without an acknowledgement for so long the cloud counts as away. */
const silence_ms = 60_000;

/** What is to be sent again. */
interface Due {
  readonly older_than_ms: number;
  /**
   * Also of lazy lanes, which may be a whole backlog: while the cloud is away, a second copy would only lie at the broker beside the
   * first. Then one row asks whether the cloud is back, and its acknowledgement brings the others.
   */
  readonly lazy: boolean;
}

export class Resending {
  readonly #now: () => number;
  #interval_ms = first_ms;
  #last_ms: number;
  #acked_ms: number;
  /** Something was released since the last time. */
  #helped = false;

  constructor(now: () => number) {
    this.#now = now;
    this.#last_ms = now();
    this.#acked_ms = now();
  }

  /** Messages unconfirmed for longer than this are to be sent again, now; undefined: not yet. */
  begin(): Due | undefined {
    if (this.#now() - this.#last_ms < this.#interval_ms / 2) return undefined;
    this.#last_ms = this.#now();
    return { older_than_ms: this.#interval_ms, lazy: this.#now() - this.#acked_ms < silence_ms };
  }

  /** So many are sent again. */
  resent(rows: number): void {
    if (rows > 0) this.#interval_ms = Math.min(this.#interval_ms * 2, max_ms);
    else if (this.#helped) this.#interval_ms = Math.max(this.#interval_ms / 2, first_ms);
    this.#helped = false;
  }

  /** The cloud acknowledged something; `released`: messages of which it was not known. */
  acked(released: number): void {
    const now_ms = this.#now();
    const was_silent = now_ms - this.#acked_ms >= silence_ms;
    this.#acked_ms = now_ms;
    if (released > 0) this.#helped = true;
    if (released === 0 || !was_silent || this.#interval_ms === first_ms) return;
    this.#interval_ms = first_ms;
    this.#last_ms = Number.NEGATIVE_INFINITY;
  }
}
