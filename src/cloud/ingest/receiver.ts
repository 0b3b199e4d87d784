/** Reads what brokers deliver, by MQTT or AMQP, and passes it on to be stored. */
import { channels, parseUp, parseWhep } from '../../contract/topics.ts';
import { finishBetween } from '../../contract/batch/steps.ts';
import { turn } from '../../platform/time.ts';
import type { ServiceLog } from '../service-log.ts';
import { texts } from '../texts.ts';
import { type Reception, readMessage, readMessageSteps, refusedUnread } from '../read-message.ts';

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
  /** Takes answers to viewers of video, which are never stored. Left out: nobody waits for them. */
  readonly onAnswer?: ((topic: string, payload: Uint8Array) => void) | undefined;
  /** Left out: nothing is logged. */
  readonly log?: ServiceLog | undefined;
}

/** A larger message takes a multiple of its bytes once it is read: packed, as it came, it waits until the database has stored others. */
const small_bytes_max = 16 * 1024;
/** Of a topic of no kit, so much is logged. */
const topic_chars_max = 200;

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
    if (parseWhep(topic)) {
      if (!retained) this.#parts.onAnswer?.(topic, payload);
      return;
    }
    const isLarge = payload.length > small_bytes_max;
    if (isLarge || parseUp(topic)?.channel === channels.batch) return this.#receiveLarge(delivered);
    await this.#take(topic, readMessage(topic, payload, retained));
  }

  /** A message that is not read counts as refused. */
  async refuse(topic: string, reason: string): Promise<void> {
    await this.#take(topic, refusedUnread(topic, reason));
  }

  async #take(topic: string, reception: Reception | undefined): Promise<void> {
    if (reception) await this.#parts.take(reception);
    else this.#parts.log?.warn({ topic: topic.slice(0, topic_chars_max) }, texts.log_topic_without_kit);
  }

  /**
   * Processes batches and large messages one at a time and in separate turns of the event loop, a large batch in several, each when there
   * is room for it; small messages do not wait.
   */
  async #receiveLarge({ topic, payload, retained }: Delivered): Promise<void> {
    const { room } = this.#parts;
    const before = this.#before;
    const done = Promise.withResolvers<void>();
    this.#before = done.promise;
    let stored: Promise<void> | undefined;
    try {
      await before;
      await turn();
      await room?.();
      stored = this.#take(topic, await finishBetween(readMessageSteps(topic, payload, retained), turn));
    } finally {
      done.resolve();
    }
    await stored;
  }
}
