/**
 * The service on a queue of RabbitMQ (AMQP 0-9-1), beside MQTT: kits publish by MQTT, and the replicas consume one quorum queue, which three
 * nodes hold. A message is acknowledged after the commit. Reconnects without limit, to the next address each time.
 */
import { messageOf } from '../../platform/errors.ts';
import { retryPauses, service_retry, stable_after_ms } from '../../mqtt/reconnect.ts';
import { OutcomeUnknown } from '../../mqtt/session.ts';
import { aborted, sleep, within } from '../../platform/time.ts';
import { CloudLink, type Order } from '../broker/cloud-link.ts';
import { payload_bytes_max } from '../read-message.ts';
import { Receiver, type ReceiverParts } from '../ingest/receiver.ts';
import type { ServiceLog } from '../service-log.ts';
import { texts } from '../texts.ts';
import { type AmqpDelivery, type AmqpOptions, AmqpSession } from './session.ts';

const confirm_ms = 10_000;
/** Wait before a message that cannot be stored is returned to the queue. */
const requeue_after_ms = 1_000;

export interface AmqpLinkParts extends ReceiverParts {
  readonly amqp: AmqpOptions;
  readonly log: ServiceLog;
  /** Counts connections and repeated deliveries; left out: they are not counted. */
  readonly count?: ((event: 'connected' | 'redelivered') => void) | undefined;
  /** Left out: `Math.random`. Spreads the attempts of replicas. */
  readonly random?: (() => number) | undefined;
}

export class AmqpLink extends CloudLink {
  /** A message to a kit has at most 100 ranges, as with each broker that reports no limit: the plugin speaks MQTT 3.1.1 to it. */
  override readonly reports_refusals = false;
  readonly #parts: AmqpLinkParts;
  readonly #receiver: Receiver;
  #session: AmqpSession | undefined;
  #isDownLogged = false;

  constructor(parts: AmqpLinkParts) {
    super();
    this.#parts = parts;
    this.#receiver = new Receiver(parts);
  }

  override get isUp(): boolean {
    return this.#session !== undefined;
  }

  override async run(signal: AbortSignal): Promise<void> {
    const { amqp, random = Math.random } = this.#parts;
    let pauses = retryPauses(service_retry, random);
    for (let attempt = 0; !signal.aborted; attempt += 1) {
      const url = amqp.urls[attempt % amqp.urls.length] ?? '';
      const from_ms = performance.now();
      try {
        const session = await AmqpSession.open(url, amqp, {
          onDelivery: (delivery) => void this.#receive(delivery, signal),
          onTooLarge: ({ topic, bytes }) => {
            this.#parts.log.warn({ topic, bytes }, texts.log_too_large);
            void this.#receiver
              .refuse(topic, texts.message_too_large(bytes, payload_bytes_max))
              .catch(() => undefined);
          },
          onBlocked: (reason) => this.#logBlocked(url, reason),
        });
        await this.#serve(session, url, signal);
      } catch (error) {
        this.#logDown(url, messageOf(error));
      }
      if (signal.aborted) return;
      if (performance.now() - from_ms > stable_after_ms) pauses = retryPauses(service_retry, random);
      await sleep(pauses.next().value, signal);
    }
  }

  /** The plugin retains what comes by MQTT only: a kit that was away sends its messages again, which causes the next acknowledgement. */
  protected override async publish(message: Order): Promise<boolean> {
    if (!this.#session) throw new Error(texts.service_not_connected);
    const isRouted = await within(confirm_ms, this.#session.publish(message));
    if (isRouted === undefined) throw new OutcomeUnknown(texts.broker_silent);
    return isRouted;
  }

  /** Serves one session until it ends or `signal` aborts. */
  async #serve(session: AmqpSession, url: string, signal: AbortSignal): Promise<void> {
    const { log, count, amqp } = this.#parts;
    this.#session = session;
    this.#isDownLogged = false;
    count?.('connected');
    log.info({ broker: url, queue: amqp.queue }, texts.log_connected);
    await Promise.race([session.closed, aborted(signal)]);
    this.#session = undefined;
    if (!signal.aborted) this.#logDown(url, await session.closed);
    await session.end();
  }

  async #receive(
    { topic, payload, redelivered, ack, requeue }: AmqpDelivery,
    signal: AbortSignal,
  ): Promise<void> {
    if (redelivered) this.#parts.count?.('redelivered');
    try {
      await this.#receiver.receive({ topic, payload, retained: false });
      ack();
    } catch {
      await sleep(requeue_after_ms, signal);
      if (!signal.aborted) requeue();
    }
  }

  #logBlocked(broker: string, reason: string | undefined): void {
    if (reason === undefined) this.#parts.log.info({ broker }, texts.log_unblocked);
    else this.#parts.log.warn({ broker, reason }, texts.log_blocked);
  }

  #logDown(broker: string, reason: string): void {
    if (this.#isDownLogged) return;
    this.#isDownLogged = true;
    this.#parts.log.warn({ broker, reason: remedied(reason, this.#parts.amqp) }, texts.log_connect_failed);
  }
}

/** Adds what to do about the refusals that a wrong queue or missing rights cause. */
function remedied(reason: string, { queue, exchange, username, vhost }: AmqpOptions): string {
  if (/PRECONDITION_FAILED/u.test(reason)) return texts.queue_differs(reason, queue);
  if (/ACCESS_REFUSED|403/u.test(reason))
    return texts.amqp_refused(reason, { username, vhost, queue, exchange });
  return reason;
}
