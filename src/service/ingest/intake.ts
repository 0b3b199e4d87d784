/** Puts what arrives into the database, many messages in one transaction, and tells when they are safe there. */
import { messageOf, StorageUnavailable } from '../../errors.ts';
import { every, sleep } from '../../platform/time.ts';
import type { Changes } from '../changes.ts';
import type { ServiceLog } from '../service-log.ts';
import type { Committed, Store } from '../store/store.ts';
import type { Reception } from './read-message.ts';

/** Receptions of one transaction. */
const receptions_max = 500;
const retry_ms = 1_000;
/** Receptions that wait while the database takes none; beyond it the sender keeps them, or they are lost to this service. */
export const waiting_max = 20_000;
/** A kit that breaks the contract is told of this often at most. */
const faults_every_ms = 60_000;
/** Kits whose faults are remembered until then. */
const faulty_kits_max = 1_000;

export interface IntakeParts {
  readonly store: Pick<Store, 'commit'>;
  readonly changes: Changes;
  readonly log: ServiceLog;
  /** Messages that arrive within this time are committed together. */
  readonly group_ms: number;
  /** Called after each commit, with what the kits should hear of it. */
  readonly onCommitted: (committed: Committed) => void;
  readonly signal: AbortSignal;
}

interface Waiting {
  readonly reception: Reception;
  readonly stored: () => void;
  readonly failed: (error: unknown) => void;
}

export class Intake {
  readonly #parts: IntakeParts;
  #waiting: Waiting[] = [];
  #running: Promise<void> | undefined;
  readonly #faulty = new Set<string>();
  #isFailing = false;

  constructor(parts: IntakeParts) {
    this.#parts = parts;
    every(faults_every_ms, parts.signal, () => this.#faulty.clear());
  }

  /** Why nothing can be stored now; undefined: it can. */
  get unready(): string | undefined {
    return this.#isFailing ? 'the database does not take messages' : undefined;
  }

  /** Resolves when the message is on disk. Rejects when the service stops before, or when too many wait already. */
  async take(reception: Reception): Promise<void> {
    this.#tellFaults(reception);
    if (this.#waiting.length >= waiting_max) {
      throw new StorageUnavailable('too many messages wait for the database');
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ reception, stored: resolve, failed: reject });
      this.#running ??= this.#run();
    });
  }

  /** Resolves when everything that was taken is stored or given up. */
  async settled(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal, group_ms } = this.#parts;
    while (this.#waiting.length > 0) {
      if (this.#waiting.length < receptions_max) await sleep(group_ms, signal);
      const some = this.#waiting.splice(0, receptions_max);
      try {
        await this.#store(some.map(({ reception }) => reception));
        for (const { stored } of some) stored();
      } catch (error) {
        if (signal.aborted) for (const { failed } of some) failed(error);
        else {
          this.#waiting = [...some, ...this.#waiting];
          await sleep(retry_ms, signal);
        }
      }
    }
    this.#running = undefined;
  }

  /** Together, or one by one when there is one among them that no database will ever take. */
  async #store(receptions: readonly Reception[]): Promise<void> {
    try {
      await this.#commit(receptions);
    } catch (error) {
      if (error instanceof StorageUnavailable) throw error;
      for (const reception of receptions) await this.#storeAlone(reception);
    }
  }

  async #storeAlone(reception: Reception): Promise<void> {
    try {
      await this.#commit([reception]);
    } catch (error) {
      if (error instanceof StorageUnavailable) throw error;
      const { kit_id } = reception;
      const facts = { kit_id, reason: messageOf(error) };
      this.#parts.log.error(facts, 'a message of the kit cannot be stored: it is given up');
    }
  }

  async #commit(receptions: readonly Reception[]): Promise<void> {
    const { store, changes, log, onCommitted } = this.#parts;
    try {
      const committed = await store.commit(receptions, Date.now());
      if (this.#isFailing) log.info({}, 'the database takes messages again');
      this.#isFailing = false;
      changes.tell(committed.changes);
      onCommitted(committed);
    } catch (error) {
      if (!(error instanceof StorageUnavailable)) throw error;
      if (!this.#isFailing) {
        const facts = { reason: messageOf(error) };
        log.error(facts, 'the database does not take messages: the broker keeps them until it does');
      }
      this.#isFailing = true;
      throw error;
    }
  }

  #tellFaults({ kit_id, faults }: Reception): void {
    const [reason] = faults;
    if (reason === undefined || this.#faulty.has(kit_id) || this.#faulty.size >= faulty_kits_max) return;
    this.#faulty.add(kit_id);
    this.#parts.log.warn({ kit_id, reason }, 'a message of the kit breaks the contract: ignored');
  }
}
