/** One connection to a RabbitMQ: the queue of the service, its consumer, and a channel on which each message is confirmed. */
import { type ChannelModel, type ConfirmChannel, type ConsumeMessage, connect } from 'amqplib';
import { messageOf } from '../../platform/errors.ts';
import { OutcomeUnknown } from '../../mqtt/session.ts';
import type { Order } from '../broker/cloud-link.ts';
import { payload_bytes_max } from '../read-message.ts';
import { texts } from '../texts.ts';

/** Address, login and queue; see `ingest.amqp` of the configuration. */
export interface AmqpOptions {
  /** `amqp://host:port` or `amqps://host:port`, tried in turn. */
  readonly urls: readonly string[];
  readonly username: string;
  readonly password: string;
  /** PEM; with it, no other authority is trusted. */
  readonly ca: string | undefined;
  readonly vhost: string;
  readonly queue: string;
  /** The topic exchange of the MQTT plugin. */
  readonly exchange: string;
  /** Messages that the broker delivers before it must wait for an acknowledgement. */
  readonly prefetch: number;
}

const connect_ms = 10_000;
/** A peer that is silent for two of these intervals counts as gone. */
const heartbeat_s = 10;
/** Part of a message that arrives in one piece; RabbitMQ's own default. */
const frame_bytes_max = 128 * 1024;
/** All that kits publish; the plugin makes dots of the slashes of topics. */
const binding = 'k1.*.up.#';

export interface AmqpDelivery {
  readonly topic: string;
  readonly payload: Uint8Array;
  readonly redelivered: boolean;
  /** It is stored: the broker may delete it. */
  readonly ack: () => void;
  /** It cannot be stored now: the broker delivers it again, to any replica. */
  readonly requeue: () => void;
}

export interface AmqpHandlers {
  readonly onDelivery: (delivery: AmqpDelivery) => void;
  /** A message exceeds the limit, and is discarded. */
  readonly onTooLarge: (message: { readonly topic: string; readonly bytes: number }) => void;
  /** The broker accepts no messages for lack of memory or disk; undefined: it does again. */
  readonly onBlocked: (reason: string | undefined) => void;
}

export class AmqpSession {
  /** Resolves with the reason when it has ended. */
  readonly closed: Promise<string>;
  readonly #model: ChannelModel;
  readonly #publisher: ConfirmChannel;
  readonly #exchange: string;
  /** Messages without a queue, by id: the broker returns them before it confirms them. */
  readonly #returned = new Set<string>();
  #messages = 0;

  private constructor(
    model: ChannelModel,
    publisher: ConfirmChannel,
    exchange: string,
    closed: Promise<string>,
  ) {
    this.#model = model;
    this.#publisher = publisher;
    this.#exchange = exchange;
    this.closed = closed;
    publisher.on('return', ({ properties }) => this.#returned.add(String(properties.messageId)));
  }

  /** Connects, makes the queue where it is missing, and begins to consume. Rejects with the reason. */
  static async open(url: string, options: AmqpOptions, handlers: AmqpHandlers): Promise<AmqpSession> {
    const model = await connectTo(url, options);
    const ended = Promise.withResolvers<string>();
    model.on('error', (error) => ended.resolve(messageOf(error)));
    model.on('close', (error) => ended.resolve(error ? messageOf(error) : texts.connection_closed));
    model.on('blocked', (reason) => handlers.onBlocked(reason));
    model.on('unblocked', () => handlers.onBlocked(undefined));
    try {
      const publisher = await model.createConfirmChannel();
      const consumer = await model.createChannel();
      for (const channel of [publisher, consumer]) {
        channel.on('error', (error) => ended.resolve(messageOf(error)));
        channel.on('close', () => ended.resolve(texts.connection_closed));
      }
      const { queue, exchange, prefetch } = options;
      const isAlive = { value: true };
      void ended.promise.then(() => (isAlive.value = false));
      await consumer.prefetch(prefetch);
      await consumer.assertQueue(queue, { durable: true, arguments: { 'x-queue-type': 'quorum' } });
      await consumer.bindQueue(queue, exchange, binding);
      const session = new AmqpSession(model, publisher, exchange, ended.promise);
      await consumer.consume(queue, (message) => {
        // The queue was deleted, or its leader moved away from a node that ends.
        if (!message) ended.resolve(texts.consumer_cancelled(queue));
        else handle(message, { consumer, isAlive, handlers });
      });
      return session;
    } catch (error) {
      await model.close().catch(() => undefined);
      throw error;
    }
  }

  /**
   * Resolves when the broker has it in all queues that take it; with false when no queue does: the kit never connected, or its session
   * expired. Rejects with `OutcomeUnknown` when that is not known.
   */
  async publish({ topic, payload, expiry_s }: Order): Promise<boolean> {
    this.#messages += 1;
    const messageId = String(this.#messages);
    const confirmed = Promise.withResolvers<undefined>();
    this.#publisher.publish(
      this.#exchange,
      topic.replaceAll('/', '.'),
      Buffer.from(payload),
      {
        messageId,
        mandatory: true,
        persistent: true,
        ...(expiry_s !== undefined && { expiration: String(expiry_s * 1_000) }),
      },
      (error: unknown) => {
        if (error) confirmed.reject(new OutcomeUnknown(messageOf(error)));
        else confirmed.resolve(undefined);
      },
    );
    const lost = this.closed.then((reason) => {
      throw new OutcomeUnknown(reason);
    });
    await Promise.race([confirmed.promise, lost]);
    return !this.#returned.delete(messageId);
  }

  /** Closes the connection; the broker gives what was not acknowledged to others. */
  async end(): Promise<void> {
    await this.#model.close().catch(() => undefined);
  }
}

/**
 * For the doctor: logs in, and looks at exchange and queue without making or taking anything. Returns the messages that wait; undefined: the
 * service makes the queue at its first start.
 */
export async function tryQueue(url: string, options: AmqpOptions): Promise<number | undefined> {
  const model = await connectTo(url, options);
  try {
    model.on('error', () => undefined);
    const channel = await model.createChannel();
    // What is missing ends the channel, which says so here too.
    channel.on('error', () => undefined);
    await channel.checkExchange(options.exchange);
    return await channel.checkQueue(options.queue).then(
      ({ messageCount }) => messageCount,
      (error: unknown) => {
        if (Reflect.get(Object(error), 'code') === not_found) return undefined;
        throw error;
      },
    );
  } finally {
    await model.close().catch(() => undefined);
  }
}
/** Reply code of AMQP 0-9-1, section 1.2. */
const not_found = 404;

async function connectTo(url: string, { username, password, vhost, ca }: AmqpOptions): Promise<ChannelModel> {
  const { protocol, hostname, port } = new URL(url);
  const isSecure = protocol === 'amqps:';
  return connect(
    {
      protocol: isSecure ? 'amqps' : 'amqp',
      hostname: hostname.replaceAll(/[[\]]/gu, ''),
      port: Number(port) || (isSecure ? 5671 : 5672),
      username,
      password,
      vhost,
      heartbeat: heartbeat_s,
      frameMax: frame_bytes_max,
      maxFrameSize: frame_bytes_max,
    },
    {
      timeout: connect_ms,
      noDelay: true,
      clientProperties: { connection_name: 'kit-connector' },
      ...(ca !== undefined && { ca: [ca] }),
    },
  );
}

interface Consuming {
  readonly consumer: {
    readonly ack: (message: ConsumeMessage) => void;
    readonly nack: (message: ConsumeMessage, all: boolean, requeue: boolean) => void;
  };
  /** After its end the library refuses to send, and the broker delivers again what was not acknowledged. */
  readonly isAlive: { readonly value: boolean };
  readonly handlers: AmqpHandlers;
}

function handle(message: ConsumeMessage, { consumer, isAlive, handlers }: Consuming): void {
  const { content } = message;
  const { routingKey, redelivered } = message.fields;
  const topic = routingKey.replaceAll('.', '/');
  const ack = (): void => {
    if (isAlive.value) consumer.ack(message);
  };
  const requeue = (): void => {
    if (isAlive.value) consumer.nack(message, false, true);
  };
  if (content.length > payload_bytes_max) {
    handlers.onTooLarge({ topic, bytes: content.length });
    ack();
  } else handlers.onDelivery({ topic, payload: content, redelivered, ack, requeue });
}
