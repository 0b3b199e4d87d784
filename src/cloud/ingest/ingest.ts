/** Writes received messages to the database, many in one transaction, and resolves when they are committed. */
import { messageOf, StorageBusy, StorageUnavailable } from '../../platform/errors.ts';
import { sleep } from '../../platform/time.ts';
import type { Reception } from '../read-message.ts';
import type { Changes } from '../changes.ts';
import type { ServiceLog } from '../service-log.ts';
import type { Committed } from '../stored/stored.ts';
import { texts } from '../texts.ts';
import type { Store } from '../store/sql-store.ts';
import { Repeats } from '../../platform/log/repeats.ts';
import { kindOf, type News } from '../stored/losses.ts';

const window_ms = 600_000;

/**
 * Logs what is refused or ignored: a line for each kind at once, and one with the count of those that follow within ten minutes. The
 * counts are logged at the end of the window, or when the signal aborts.
 */
function refusalLog({ log, signal }: Pick<IngestParts, 'log' | 'signal'>) {
  const repeats = new Repeats(window_ms);
  signal.addEventListener('abort', () => repeats.flush(), { once: true });
  return (sentence: string, { kit_id, count, ...about }: News & { readonly kit_id: string }): void => {
    const { what: channel, reason } = about;
    const facts = { kit_id, channel, ...(reason !== '' && { reason }) };
    const summarize = (repeated: number): void =>
      log.warn({ ...facts, ...(repeated > 0 && { repeated }) }, sentence);
    const text = `${kit_id} ${sentence} ${kindOf(about)}`;
    if (repeats.admits([{ text, max: 1, count, summarize }])) summarize(count - 1);
  };
}

/** Receptions of one transaction. */
const receptions_max = 500;
/** Bytes of one transaction, by the weight of receptions: the thread of the database has them once more. */
const weight_max = 4 * 1024 * 1024;
/** Bytes that may wait for the database before further batches stay packed. */
export const waiting_weight_max = 32 * 1024 * 1024;
const retry_ms = 1_000;
/** Receptions that may wait while the database is unavailable; beyond it the sender keeps them, or they are lost to this service. */
export const waiting_max = 20_000;
/** A database without an answer for this long counts as unavailable, though no call has failed. */
const unanswered_ms = 10_000;

export interface IngestParts {
  readonly store: Pick<Store, 'commit'>;
  readonly changes: Changes;
  readonly log: ServiceLog;
  /** Messages that arrive within this time are committed together. */
  readonly group_ms: number;
  /** Called after each commit, with the acknowledgements for the kits. */
  readonly onCommitted: (committed: Committed) => void;
  /** Whether the database has answered other work within that time; left out: not known. */
  readonly hasAnswered?: ((within_ms: number) => boolean) | undefined;
  readonly signal: AbortSignal;
}

interface Waiting {
  readonly reception: Reception;
  readonly stored: () => void;
  readonly failed: (error: unknown) => void;
  /** `apart`: in the queue of its kit, whose rows another process has locked. */
  place: 'queue' | 'apart' | 'done';
}

export class Ingest {
  readonly #parts: IngestParts;
  #waiting: Waiting[] = [];
  /** By kit: receptions of kits whose rows another process has locked. Other kits are not delayed. */
  readonly #held = new Map<string, Waiting[]>();
  #count = 0;
  #weight = 0;
  /** Messages since the queue became full; told when half of it is stored, so that a full queue is one line of the log. */
  #turned_away = 0;
  readonly #onRoom: (() => void)[] = [];
  #running: Promise<void> | undefined;
  #runningHeld: Promise<void> | undefined;
  readonly #noteRefusal: ReturnType<typeof refusalLog>;
  #isFailing = false;
  #asked_ms: number | undefined;

  constructor(parts: IngestParts) {
    this.#parts = parts;
    this.#noteRefusal = refusalLog(parts);
    const end = (): void => {
      for (const notify of this.#onRoom.splice(0)) notify();
    };
    parts.signal.addEventListener('abort', end, { once: true });
  }

  /** Returns why nothing can be stored now; undefined: storing works. */
  get unready(): string | undefined {
    if (this.#isFailing) return 'the database cannot be written';
    const isSilent = this.#asked_ms !== undefined && performance.now() - this.#asked_ms > unanswered_ms;
    if (!isSilent) return undefined;
    return this.#parts.hasAnswered?.(unanswered_ms) ? texts.database_slow : texts.database_silent;
  }

  /** Resolves when the message is on disk. Rejects when the service stops before, or when too many wait already. */
  async take(reception: Reception): Promise<void> {
    const { kit_id, unknown: what } = reception;
    if (what !== undefined)
      this.#noteRefusal(texts.log_topic_unknown, { kit_id, what, reason: '', count: 1 });
    if (this.#count >= waiting_max) {
      if (this.#turned_away === 0) this.#parts.log.error({ waiting: this.#count }, texts.log_turned_away);
      this.#turned_away += reception.messages.length;
      throw new StorageUnavailable(texts.database_behind);
    }
    this.#count += 1;
    this.#weight += weightOf(reception);
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { reception, stored: resolve, failed: reject, place: 'queue' };
      const held = this.#held.get(reception.kit_id);
      if (held) {
        waiting.place = 'apart';
        held.push(waiting);
      } else {
        this.#waiting.push(waiting);
        this.#running ??= this.#run();
      }
    });
  }

  /** Resolves when the queue has room for another batch, or the service stops. */
  async room(): Promise<void> {
    while (this.#weight > waiting_weight_max && !this.#parts.signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#onRoom.push(resolve);
      await promise;
    }
  }

  /** Resolves when every accepted reception is stored or discarded. */
  async settled(): Promise<void> {
    while (this.#running || this.#runningHeld) await Promise.all([this.#running, this.#runningHeld]);
  }

  async #run(): Promise<void> {
    const { signal, group_ms } = this.#parts;
    while (this.#waiting.length > 0) {
      if (this.#waiting.length < receptions_max) await sleep(group_ms, signal);
      const some = this.#waiting.splice(0, portionOf(this.#waiting));
      try {
        await this.#store(some);
      } catch (error) {
        const left = some.filter(({ place }) => place === 'queue');
        if (signal.aborted) this.#giveUp(left, error);
        else {
          this.#waiting = [...left, ...this.#waiting];
          await sleep(retry_ms, signal);
        }
      }
    }
    this.#running = undefined;
  }

  /** Retries the kits whose rows are locked, one after the other, until all are stored. */
  async #runHeld(): Promise<void> {
    const { signal } = this.#parts;
    while (this.#held.size > 0) {
      for (const [kit_id, held] of this.#held) {
        const some = held.splice(0, portionOf(held));
        try {
          await this.#storeOrSplit(some);
          if (held.length === 0) this.#held.delete(kit_id);
        } catch (error) {
          held.unshift(...some.filter(({ place }) => place !== 'done'));
          if (!signal.aborted) continue;
          this.#held.delete(kit_id);
          this.#giveUp(held, error);
        }
      }
      if (this.#held.size > 0) await sleep(retry_ms, signal);
    }
    this.#runningHeld = undefined;
  }

  #giveUp(some: readonly Waiting[], error: unknown): void {
    this.#leave(some);
    for (const { failed } of some) failed(error);
  }

  #leave(some: readonly Waiting[]): void {
    this.#count -= some.length;
    for (const { reception } of some) this.#weight -= weightOf(reception);
    if (this.#turned_away > 0 && this.#count < waiting_max / 2) {
      this.#parts.log.warn({ messages: this.#turned_away }, texts.log_takes_again);
      this.#turned_away = 0;
    }
    for (const notify of this.#onRoom.splice(0)) notify();
  }

  #done(some: readonly Waiting[]): void {
    this.#leave(some);
    for (const each of some) {
      each.place = 'done';
      each.stored();
    }
  }

  /** Stores them together; a kit whose rows are locked gets its own queue, and the others are not delayed. */
  async #store(some: readonly Waiting[]): Promise<void> {
    try {
      await this.#storeOrSplit(some);
    } catch (error) {
      const left = some.filter(({ place }) => place === 'queue');
      const [kit_id, ...others] = new Set(left.map(({ reception }) => reception.kit_id));
      if (!(error instanceof StorageBusy) || kit_id === undefined || this.#parts.signal.aborted) throw error;
      if (others.length > 0) for (const half of halvesByKit(left)) await this.#store(half);
      else {
        // The same list: its first part may be under way.
        const held = this.#held.get(kit_id) ?? [];
        held.push(...left);
        this.#held.set(kit_id, held);
        for (const each of left) each.place = 'apart';
        this.#runningHeld ??= this.#runHeld();
      }
    }
  }

  /** Stores them together, or in smaller parts when one of them is rejected permanently. */
  async #storeOrSplit(some: readonly Waiting[]): Promise<void> {
    try {
      await this.#commit(some.map(({ reception }) => reception));
      this.#done(some);
    } catch (error) {
      if (error instanceof StorageUnavailable) throw error;
      const [only, ...others] = some;
      if (only && others.length === 0) {
        await this.#storeParts(only.reception, error);
        this.#done(some);
      } else for (const half of halves(some)) await this.#storeOrSplit(half);
    }
  }

  /** Stores a batch without the messages that the database rejects. Their numbers count as received, or the kit would send them without end. */
  async #storeParts(reception: Reception, error: unknown): Promise<void> {
    const { kit_id, messages } = reception;
    const [only] = messages;
    if (messages.length > 1) {
      for (const part of halvesOf(reception)) {
        await this.#commit([part]).catch(async (reason: unknown) => {
          if (reason instanceof StorageUnavailable) throw reason;
          await this.#storeParts(part, reason);
        });
      }
      return;
    }
    const { epoch, seq, channel } = only ?? {};
    const facts = { kit_id, epoch, seq, channel: channel?.kind, reason: messageOf(error) };
    this.#parts.log.error(facts, texts.log_message_rejected);
    await this.#commit([refused(reception, messageOf(error))]).catch((reason: unknown) => {
      if (reason instanceof StorageUnavailable) throw reason;
    });
  }

  async #commit(receptions: readonly Reception[]): Promise<void> {
    const { store, changes, log, onCommitted } = this.#parts;
    const asked_ms = performance.now();
    this.#asked_ms ??= asked_ms;
    try {
      const committed = await store.commit(receptions, Date.now());
      if (this.#isFailing) log.info({}, texts.log_writes_restored);
      this.#isFailing = false;
      for (const each of committed.refused) this.#noteRefusal(texts.log_message_invalid, each);
      changes.publish(committed.changes);
      onCommitted(committed);
    } catch (error) {
      if (!(error instanceof StorageUnavailable) || error instanceof StorageBusy) throw error;
      if (!this.#isFailing) {
        const facts = { reason: messageOf(error) };
        log.error(facts, texts.log_write_failed);
      }
      this.#isFailing = true;
      throw error;
    } finally {
      if (this.#asked_ms === asked_ms) this.#asked_ms = undefined;
    }
  }
}

function weightOf({ weight }: Reception): number {
  return weight ?? 0;
}

/** Returns how many of the first fit in one transaction: at least one, whatever its size. */
function portionOf(waiting: readonly Waiting[]): number {
  let weight = 0;
  for (const [index, { reception }] of waiting.entries()) {
    weight += weightOf(reception);
    if (index === receptions_max || (index > 0 && weight > weight_max)) return index;
  }
  return waiting.length;
}

/** Splits what could not be stored together, until the faulty message is isolated. `some` holds more than one. */
function halves<T>(some: readonly T[]): readonly (readonly T[])[] {
  const middle = Math.ceil(some.length / 2);
  return [some.slice(0, middle), some.slice(middle)];
}

/** Two parts that have no kit in common; `some` is of more than one kit. */
function halvesByKit<T extends { readonly reception: Reception }>(
  some: readonly T[],
): readonly (readonly T[])[] {
  const kits = [...new Set(some.map(({ reception }) => reception.kit_id))];
  const [, second] = halves(kits);
  const isSecond = new Set(second);
  return [
    some.filter(({ reception }) => !isSecond.has(reception.kit_id)),
    some.filter(({ reception }) => isSecond.has(reception.kit_id)),
  ];
}

/** Two receptions of the same messages; what else was received stays with the first. */
function halvesOf(reception: Reception): readonly Reception[] {
  const [first = [], second = []] = halves(reception.messages);
  return [
    { ...reception, packed: undefined, messages: first },
    { ...reception, packed: undefined, messages: second, cleared: [], faults: [] },
  ];
}

/** The same without the content of its messages: they count as received and as refused. */
function refused(reception: Reception, reason: string): Reception {
  return {
    ...reception,
    packed: undefined,
    cleared: [],
    messages: reception.messages.map((message) => ({ ...message, data: null, refused: reason })),
  };
}
