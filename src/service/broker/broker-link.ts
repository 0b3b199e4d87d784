/** The broker connection of the service, reconnecting without limit: receives what kits publish, sends tasks, acks and sync requests. */
import { cut, name_chars_max } from '../../contract/limits.ts';
import type { PartnerChange } from '../../contract/partners.ts';
import type { CloudAck } from '../../contract/tasks.ts';
import { channels, downTopic, parseUp, retainedFilters, upFilter } from '../../contract/topics.ts';
import { messageOf } from '../../errors.ts';
import type { BrokerOptions, ProtocolVersion } from '../../mqtt/broker.ts';
import { codeInWords, reasonOf } from '../../mqtt/codes.ts';
import type { Received } from '../../mqtt/handling.ts';
import { keepConnected } from '../../mqtt/reconnect.ts';
import { openSession, type Outgoing, OutcomeUnknown, type Session } from '../../mqtt/session.ts';
import type { OpenBrokerSocket } from '../../mqtt/socket.ts';
import { aborted, within } from '../../platform/time.ts';
import { payload_bytes_max, type Reception, readMessage } from '../ingest/read-message.ts';
import type { SetAside } from '../ingest/set-aside.ts';
import type { Dispatcher } from '../service.ts';
import type { ServiceLog } from '../service-log.ts';
import type { TaskOrder } from '../store/store.ts';
import { MessageRefused } from './message-refused.ts';
import { texts } from '../texts.ts';

const retry = { first_ms: 500, max_ms: 30_000 } as const;
/** Messages that the broker sends before it must wait for a PUBACK: what one commit can take. */
const receive_maximum = 500;
/** The largest packet that a broker may send: the largest payload that is read, its topic and its properties. */
const packet_bytes_max = payload_bytes_max + 64 * 1024;
const puback_ms = 10_000;
/** PUBACK: accepted without a subscriber (MQTT 5, section 3.4.2.1). */
const no_subscriber = 0x10;
/** A kit does not execute older tasks; the broker need not keep them longer. */
const task_expiry_s = 15 * 60;
const session_expiry_s = 86_400;
/** Time for the retained messages to arrive after the subscription; MQTT does not mark the last one. */
const sweep_ms = 15_000;

export interface BrokerLinkParts {
  readonly broker: BrokerOptions;
  /** The same at each start, so that the broker keeps the session. */
  readonly client_id: string;
  /** Name of the shared subscription of the replicas: each message goes to one of them. Undefined: a single service. */
  readonly share: string | undefined;
  /** Resolves when it is stored. */
  readonly take: (reception: Reception) => Promise<void>;
  readonly log: ServiceLog;
  /** Resolves when the messages that wait for the database leave room for another batch. Left out: at once. */
  readonly room?: (() => Promise<void>) | undefined;
  /** Quarantine of messages that crashed the process. Left out: none. */
  readonly aside?: SetAside | undefined;
  /** Left out: a socket of the operating system. */
  readonly openSocket?: OpenBrokerSocket | undefined;
  /** Left out: `Math.random`. Spreads the attempts of replicas. */
  readonly random?: (() => number) | undefined;
}

export class BrokerLink implements Dispatcher {
  readonly #parts: BrokerLinkParts;
  #session: Session | undefined;
  #isDownLogged = false;
  /** Resolves when the batch before was read: a few packed bytes can hold megabytes. */
  #batches: Promise<void> = Promise.resolve();

  constructor(parts: BrokerLinkParts) {
    this.#parts = parts;
  }

  get isUp(): boolean {
    return this.#session !== undefined;
  }

  /** Whether the broker announces its limits and reports which message it refused: MQTT 3.1.1 has no means to. */
  get reports_refusals(): boolean {
    return this.#session?.protocol === '5';
  }

  /** Runs until `signal` aborts and the connection is closed. */
  async run(signal: AbortSignal): Promise<void> {
    const { broker, random = Math.random } = this.#parts;
    await keepConnected(
      {
        protocol: broker.protocol,
        retry,
        now: () => performance.now(),
        random,
        open: async (protocol, stop) => this.#open(protocol, stop),
        serve: async (session, stop) => this.#serve(session, stop),
        onFailed: (error, { isOtherVersionDue }) => {
          if (!isOtherVersionDue) this.#logDown(messageOf(error));
        },
      },
      signal,
    );
  }

  /**
   * Resolves when the broker has accepted the task, and also when the outcome is unknown: the kit reports it if it got it.
   * Rejects when the task certainly did not reach a kit. It is never sent a second time.
   */
  async dispatch({ kit_id, task_id, created_ms, due_ms, ...order }: TaskOrder): Promise<void> {
    const { asset_id, command_name, payload, requested_by } = order;
    const requested_by_name = cut(order.requested_by_name, name_chars_max);
    const created_at = new Date(created_ms).toISOString();
    const body = { task_id, asset_id, command_name, payload, requested_by, requested_by_name, created_at };
    try {
      const code = await this.#publish({
        topic: downTopic(kit_id, { kind: 'task', task_id }),
        payload: JSON.stringify(body),
        retain: false,
        expiry_s: Math.min(task_expiry_s, Math.ceil((due_ms - created_ms) / 1_000)),
      });
      if (code === no_subscriber) throw new Error(texts.kit_not_connected);
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

  /** Sends what this side has of a partner asset. */
  async sendPartner(kit_id: string, asset_id: string, change: PartnerChange): Promise<void> {
    const topic = downTopic(kit_id, { kind: 'partner', asset_id });
    await this.#publish({ topic, payload: JSON.stringify(change), retain: false });
  }

  /** Rejects with `MessageRefused`, also when it is larger than the broker accepts. */
  async acknowledge(kit_id: string, ack: CloudAck, retain: boolean): Promise<void> {
    const payload = JSON.stringify(ack);
    await this.#publish({ topic: downTopic(kit_id, { kind: 'ack' }), payload, retain });
  }

  /** Asks the kit to publish everything retained, and its telemetry, again. */
  async requestSync(kit_id: string): Promise<void> {
    await this.#publish({ topic: downTopic(kit_id, { kind: 'sync' }), payload: '{}', retain: false });
  }

  /** Resolves with the reason code. Rejects with `MessageRefused`, and with `OutcomeUnknown` when no PUBACK comes. */
  async #publish(message: Outgoing): Promise<number> {
    if (!this.#session) throw new Error(texts.service_not_connected);
    const puback = await within(puback_ms, this.#session.publishAndWait(message));
    if (!puback) throw new OutcomeUnknown(texts.broker_silent);
    if (puback.code >= 0x80) throw new MessageRefused(puback.code, puback.reason);
    return puback.code;
  }

  async #open(protocol: ProtocolVersion, signal: AbortSignal): Promise<Session> {
    const { broker, client_id, share, log, openSocket } = this.#parts;
    return openSession(
      {
        broker,
        client_id,
        protocol,
        openSocket,
        // A session of a removed replica would hold messages that no other replica receives.
        session_expiry_s: share === undefined ? session_expiry_s : 0,
        receive_maximum,
        packet_bytes_max,
        unhandled_max: receive_maximum,
        onMessage: async (message) => {
          await this.#receive(message);
          return true;
        },
        onOversize: ({ topic, bytes }) => log.warn({ topic, bytes }, texts.log_too_large),
      },
      signal,
    );
  }

  /** Serves one session until it ends or `signal` aborts. */
  async #serve(session: Session, signal: AbortSignal): Promise<'later'> {
    const { broker, share, log } = this.#parts;
    try {
      await subscribe(session, share === undefined ? upFilter : `$share/${share}/${upFilter}`);
      this.#session = session;
      this.#isDownLogged = false;
      log.info({ broker: broker.url, protocol: session.protocol }, texts.log_connected);
      if (share !== undefined) void this.#sweep(session, signal);
      await Promise.race([session.closed, aborted(signal)]);
      this.#session = undefined;
      if (!signal.aborted) this.#logDown(await session.closed);
    } catch (error) {
      if (!signal.aborted) this.#logDown(messageOf(error));
    }
    await session.end();
    return 'later';
  }

  /**
   * Reads the retained state of all kits once at each connect: a shared subscription delivers no retained messages (MQTT 5,
   * section 4.8.2), and messages in flight to a crashed replica are lost. What other replicas have stored counts once.
   */
  async #sweep(session: Session, signal: AbortSignal): Promise<void> {
    try {
      for (const filter of retainedFilters) await subscribe(session, filter);
      await within(sweep_ms, session.closed, signal);
      for (const filter of retainedFilters) await session.unsubscribe(filter);
    } catch (error) {
      // A connection that ended is reported where it is served.
      if (this.#session === session)
        this.#parts.log.warn({ reason: messageOf(error) }, texts.log_retained_failed);
    }
  }

  async #receive(received: Received): Promise<void> {
    const { topic, payload, retained } = received;
    if (isBatch(topic)) return this.#receiveBatch(received);
    const reception = readMessage(topic, payload, retained);
    // A message of no kit is acknowledged as well, or the broker would deliver it again without end.
    if (reception) await this.#parts.take(reception);
  }

  /** Processes batches one at a time, each when there is room for it; single messages do not wait. */
  async #receiveBatch({ topic, payload, retained }: Received): Promise<void> {
    const { take, room, aside } = this.#parts;
    const before = this.#batches;
    const turn = Promise.withResolvers<void>();
    this.#batches = turn.promise;
    let stored: Promise<void> | undefined;
    try {
      await before;
      await room?.();
      const read = (): Reception | undefined => readMessage(topic, payload, retained);
      const reception = aside ? await aside.guard(topic, payload, read) : read();
      if (reception) stored = take(reception);
    } finally {
      turn.resolve();
    }
    await stored;
  }

  #logDown(reason: string): void {
    if (this.#isDownLogged) return;
    this.#isDownLogged = true;
    const { broker, log } = this.#parts;
    log.warn({ broker: broker.url, reason }, texts.log_connect_failed);
  }
}

/** Subscribes, and rejects when the broker refuses. Without `rap` only retained messages carry the retain flag. */
async function subscribe(session: Session, filter: string): Promise<void> {
  const refused = await session.subscribe([filter], { rap: false });
  const code = refused.get(filter);
  if (code === undefined) return;
  throw new Error(texts.subscription_refused(filter, codeInWords(code), reasonOf(code).remedy));
}

function isBatch(topic: string): boolean {
  return parseUp(topic)?.channel === channels.batch;
}
