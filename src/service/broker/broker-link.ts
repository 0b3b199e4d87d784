/** The service's link to the broker, kept up for ever: takes what kits publish, and sends tasks, acks and sync requests down. */
import type { CloudAck } from '../../contract/tasks.ts';
import { downTopic, retainedFilters, upFilter } from '../../contract/topics.ts';
import { messageOf } from '../../errors.ts';
import { aborted, backoff, sleep, within } from '../../platform/time.ts';
import { type Reception, readMessage } from '../ingest/read-message.ts';
import type { Dispatcher } from '../service.ts';
import type { ServiceLog } from '../service-log.ts';
import type { TaskOrder } from '../store/store.ts';
import {
  type BrokerAddress,
  type MqttSession,
  openMqttSession,
  OutcomeUnknown,
  type Publication,
  type Received,
  VersionRefused,
} from './mqtt-session.ts';

/** The pause starts again at its shortest only after the connection has held for so long. */
const stable_after_ms = 60_000;
const pause_ms = { first: 500, max: 30_000 } as const;
/** A kit carries nothing out that is older; the broker need not keep it any longer. */
const task_expiry_s = 15 * 60;
const session_expiry_s = 86_400;
/** What the broker has retained comes within this time of the subscription; it does not say when it was the last of it. */
const sweep_ms = 15_000;

export interface BrokerLinkParts {
  readonly broker: BrokerAddress;
  /** The same at each start, so that the broker keeps what came meanwhile. */
  readonly client_id: string;
  /** Name of the subscription that replicas share: each message goes to one of them. Undefined: there is no other. */
  readonly share: string | undefined;
  /** Resolves when it is stored. */
  readonly take: (reception: Reception) => Promise<void>;
  readonly log: ServiceLog;
}

export class BrokerLink implements Dispatcher {
  readonly #parts: BrokerLinkParts;
  #session: MqttSession | undefined;
  #protocol: '5' | '3.1.1';
  #isDownLogged = false;

  constructor(parts: BrokerLinkParts) {
    this.#parts = parts;
    this.#protocol = parts.broker.protocol === '3.1.1' ? '3.1.1' : '5';
  }

  get isUp(): boolean {
    return this.#session !== undefined;
  }

  /** Runs until `signal` aborts and the connection is closed. */
  async run(signal: AbortSignal): Promise<void> {
    let pauses = backoff(pause_ms.first, pause_ms.max);
    while (!signal.aborted) {
      const from_ms = performance.now();
      const before = this.#protocol;
      await this.#once(signal);
      if (performance.now() - from_ms > stable_after_ms) pauses = backoff(pause_ms.first, pause_ms.max);
      if (this.#protocol === before) await sleep(pauses.next().value, signal);
    }
  }

  /**
   * Resolves when the broker has it, and also when it may have it: the kit tells what came of it, or nobody does.
   * Rejects when no kit can have heard of it. It is never sent a second time.
   */
  async dispatch({ kit_id, task_id, created_ms, ...order }: TaskOrder): Promise<void> {
    const { asset_id, command_name, payload, requested_by } = order;
    const created_at = new Date(created_ms).toISOString();
    const body = { task_id, asset_id, command_name, payload, requested_by, created_at };
    try {
      const { isHeard } = await this.#publish({
        topic: downTopic(kit_id, { kind: 'task', task_id }),
        payload: JSON.stringify(body),
        retain: false,
        expiry_s: task_expiry_s,
      });
      if (!isHeard) throw new Error('the broker knows of no connection of the kit');
    } catch (error) {
      if (!(error instanceof OutcomeUnknown)) throw error;
    }
  }

  async cancel(kit_id: string, task_id: string): Promise<void> {
    await this.#publish({
      topic: downTopic(kit_id, { kind: 'cancel', task_id }),
      payload: '{}',
      retain: false,
      expiry_s: task_expiry_s,
    });
  }

  async acknowledge(kit_id: string, ack: CloudAck, retain: boolean): Promise<void> {
    const payload = JSON.stringify(ack);
    await this.#publish({ topic: downTopic(kit_id, { kind: 'ack' }), payload, retain });
  }

  /** Asks the kit to publish everything retained, and its telemetry, again. */
  async requestSync(kit_id: string): Promise<void> {
    await this.#publish({ topic: downTopic(kit_id, { kind: 'sync' }), payload: '{}', retain: false });
  }

  async #publish(publication: Publication): Promise<{ readonly isHeard: boolean }> {
    if (!this.#session) throw new Error('the service is not connected to the broker');
    return this.#session.publish(publication);
  }

  /** One connection, from the attempt to its end. */
  async #once(signal: AbortSignal): Promise<void> {
    const { broker, client_id, share, log } = this.#parts;
    try {
      const session = await openMqttSession(
        {
          broker,
          client_id,
          protocol: this.#protocol,
          // What the broker kept for a replica that is gone would wait there, and the others go on without it.
          session_expiry_s: share === undefined ? session_expiry_s : 0,
          onMessage: async (message) => this.#receive(message),
        },
        signal,
      );
      await session.subscribe(share === undefined ? upFilter : `$share/${share}/${upFilter}`);
      this.#session = session;
      this.#isDownLogged = false;
      log.info({ broker: broker.url, protocol: this.#protocol }, 'the service is connected to the broker');
      if (share !== undefined) void this.#sweep(session, signal);
      const reason = await Promise.race([session.closed, aborted(signal).then(() => undefined)]);
      this.#session = undefined;
      if (reason === undefined) await session.end();
      else this.#tellDown(reason);
    } catch (error) {
      this.#session = undefined;
      if (signal.aborted) return;
      if (error instanceof VersionRefused && broker.protocol === 'auto' && this.#protocol === '5') {
        this.#protocol = '3.1.1';
        return;
      }
      this.#tellDown(messageOf(error));
    }
  }

  /**
   * A shared subscription brings nothing that is retained (MQTT 5, section 4.8.2), and what was on its way to a replica that
   * died is lost: the present state of all kits is read once at each connect. What other replicas have already counts once.
   */
  async #sweep(session: MqttSession, signal: AbortSignal): Promise<void> {
    try {
      for (const filter of retainedFilters) await session.subscribe(filter);
      await within(sweep_ms, session.closed, signal);
      for (const filter of retainedFilters) await session.unsubscribe(filter);
    } catch {
      // The connection ended, and the next one begins anew.
    }
  }

  async #receive({ topic, payload, retained }: Received): Promise<void> {
    const reception = readMessage(topic, payload, retained);
    // What is no kit's message is acknowledged, or it would come again for ever.
    if (reception) await this.#parts.take(reception);
  }

  #tellDown(reason: string): void {
    if (this.#isDownLogged) return;
    this.#isDownLogged = true;
    const { broker, log } = this.#parts;
    log.warn({ broker: broker.url, reason }, 'the service has no connection to the broker: it tries again');
  }
}
