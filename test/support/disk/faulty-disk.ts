/** A real store on a disk that refuses or hangs when a test says so. */
import { StorageUnavailable } from '../../../src/platform/errors.ts';
import type { Work } from '../../../src/kit/outbox/protocol.ts';
import { eventually } from '../eventually.ts';
import { startStore, type StartStore, type StoreClient } from '../../../src/kit/outbox/live/store-client.ts';

export class FaultyDisk {
  /** Commits that reached the disk. */
  readonly commits: Work[] = [];
  #state: 'ok' | 'refuses' | 'hangs' = 'ok';
  #answers: Promise<void> = Promise.resolve();
  #heal: () => void = () => undefined;
  #refusals = 0;

  /** Every write fails at once. */
  refuse(): void {
    this.heal();
    this.#state = 'refuses';
  }

  /** Resolves once some more writes have been tried. */
  async refusedAgain(): Promise<void> {
    const before = this.#refusals;
    await eventually('the disk has refused again', () => this.#refusals >= before + 2);
  }

  /** Every request waits until the disk heals, as behind a write that the kernel does not end. */
  hang(): void {
    this.heal();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#state = 'hangs';
    this.#answers = promise;
    this.#heal = resolve;
  }

  heal(): void {
    this.#state = 'ok';
    this.#heal();
  }

  readonly start: StartStore = async (options) => {
    const { client, opened } = await startStore(options);
    const { write, read } = this.#passes();
    const faulty: StoreClient = {
      ...client,
      commit: write(async (work) => {
        this.commits.push(work);
        return client.commit(work);
      }),
      confirm: write(client.confirm),
      admit: write(client.admit),
      retryQuarantined: write(client.retryQuarantined),
      discardQuarantined: write(client.discardQuarantined),
      setClockOffset: write(client.setClockOffset),
      take: read(client.take),
      inspect: read(client.inspect),
      findTask: read(client.findTask),
      beginEpoch: read(client.beginEpoch),
    };
    return { client: faulty, opened };
  };

  #passes() {
    const read =
      <A extends unknown[], T>(ask: (...args: A) => Promise<T>) =>
      async (...args: A): Promise<T> => {
        await this.#answers;
        return ask(...args);
      };
    const write = <A extends unknown[], T>(ask: (...args: A) => Promise<T>) => {
      const passed = read(ask);
      return async (...args: A): Promise<T> => {
        if (this.#state === 'refuses') {
          this.#refusals += 1;
          throw new StorageUnavailable('the disk is read-only (test)');
        }
        return passed(...args);
      };
    };
    return { read, write };
  }
}
