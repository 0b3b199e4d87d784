/** Reads what brokers deliver, by MQTT or AMQP, and passes it on to be stored. */
import { channels, parseUp } from '../../contract/topics.ts';
import { finishBetween } from '../../contract/batch/steps.ts';
import { turn } from '../../platform/time.ts';
import { type Reception, readMessage, readMessageSteps } from './read-message.ts';
import type { SetAside } from './set-aside.ts';

export interface Delivered {
  readonly topic: string;
  readonly payload: Uint8Array;
  readonly retained: boolean;
}

export interface ReceiverParts {
  /** Resolves when it is stored. */
  readonly take: (reception: Reception) => Promise<void>;
  /** Resolves when the messages that wait for the database leave room for another batch. Left out: at once. */
  readonly room?: (() => Promise<void>) | undefined;
  /** Quarantine of messages that crashed the process. Left out: none. */
  readonly aside?: SetAside | undefined;
}

/** A larger message takes a multiple of its bytes once it is read: packed, as it came, it waits until the database has stored others. */
const small_bytes_max = 16 * 1024;

export class Receiver {
  readonly #parts: ReceiverParts;
  /** Resolves when the batch or large message before was read: a few packed bytes can hold megabytes. */
  #before: Promise<void> = Promise.resolve();

  constructor(parts: ReceiverParts) {
    this.#parts = parts;
  }

  /** Resolves when it is stored, and also for a message of no kit: the broker would deliver it again without end. */
  async receive(delivered: Delivered): Promise<void> {
    const { topic, payload, retained } = delivered;
    const isLarge = payload.length > small_bytes_max;
    if (isLarge || parseUp(topic)?.channel === channels.batch) return this.#receiveLarge(delivered);
    const reception = readMessage(topic, payload, retained);
    if (reception) await this.#parts.take(reception);
  }

  /**
   * Processes batches and large messages one at a time and in separate turns of the event loop, a large batch in several, each when there
   * is room for it; small messages do not wait.
   */
  async #receiveLarge({ topic, payload, retained }: Delivered): Promise<void> {
    const { take, room, aside } = this.#parts;
    const before = this.#before;
    const done = Promise.withResolvers<void>();
    this.#before = done.promise;
    let stored: Promise<void> | undefined;
    try {
      await before;
      await turn();
      await room?.();
      const read = async (): Promise<Reception | undefined> =>
        finishBetween(readMessageSteps(topic, payload, retained), turn);
      const reception = aside ? await aside.guard(topic, payload, read) : await read();
      if (reception) stored = take(reception);
    } finally {
      done.resolve();
    }
    await stored;
  }
}
