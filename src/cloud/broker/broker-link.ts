/** The broker connection of the service, reconnecting without limit: receives what kits publish, sends tasks, acks and sync requests. */
import { retainedFilters, upFilter } from '../../contract/topics.ts';
import { messageOf } from '../../platform/errors.ts';
import type { BrokerOptions, ProtocolVersion } from '../../mqtt/broker.ts';
import { codeInWords, reasonOf } from '../../mqtt/codes.ts';
import { keepConnected, ProtocolChoice, service_retry } from '../../mqtt/reconnect.ts';
import { wayTo } from '../../mqtt/proxy.ts';
import { openSession, OutcomeUnknown, type Session } from '../../mqtt/session.ts';
import type { OpenTransport } from '../../mqtt/socket.ts';
import { Semaphore } from '../../platform/semaphore.ts';
import { aborted, within } from '../../platform/time.ts';
import { payload_bytes_max } from '../read-message.ts';
import { Receiver, type ReceiverParts } from '../ingest/receiver.ts';
import type { ServiceLog } from '../service-log.ts';
import { CloudLink, MessageRefused, type Order } from './cloud-link.ts';
import type { ShareCheck } from './share-check.ts';
import { texts } from '../texts.ts';

/** Messages that the broker sends before it must wait for a PUBACK: what one commit can take. */
const receive_maximum = 500;
/** The largest packet that a broker may send: the largest payload that is read, its topic and its properties. */
const packet_bytes_max = payload_bytes_max + 64 * 1024;
const puback_ms = 10_000;
/** PUBACK: accepted without a subscriber (MQTT 5, section 3.4.2.1). */
const no_subscriber = 0x10;
const session_expiry_s = 86_400;
/** Time for the retained messages to arrive after the subscription; MQTT does not mark the last one. */
const sweep_default_ms = 15_000;

export interface BrokerLinkParts extends ReceiverParts {
  readonly broker: BrokerOptions;
  /** The same with its credentials as they are on disk now; left out: they stay. */
  readonly renew?: (() => Promise<BrokerOptions>) | undefined;
  /** The same at each start, so that the broker keeps the session. */
  readonly client_id: string;
  /** Name of the shared subscription of the replicas: each message goes to one of them. Undefined: a single service. */
  readonly share: string | undefined;
  readonly log: ServiceLog;
  /** Left out: sockets of the operating system. */
  readonly openTransport?: OpenTransport | undefined;
  /** Looks whether the shared subscription delivers; left out: it is not looked at. */
  readonly shareCheck?: ShareCheck | undefined;
  /** Time for the retained messages to arrive. Left out: 15 s. */
  readonly sweep_ms?: number | undefined;
  /** Counts connections; left out: they are not counted. */
  readonly count?: ((event: 'connected') => void) | undefined;
  /** Left out: `Math.random`. Spreads the attempts of replicas. */
  readonly random?: (() => number) | undefined;
}

export class BrokerLink extends CloudLink {
  readonly #parts: BrokerLinkParts;
  readonly #receiver: Receiver;
  #session: Session | undefined;
  /** What the broker takes at once. Its answers stand behind all that kits publish: on a busy machine they come late. */
  #room = new Semaphore(1);
  #isDownLogged = false;

  constructor(parts: BrokerLinkParts) {
    super();
    this.#parts = parts;
    this.#receiver = new Receiver(parts);
  }

  override get isUp(): boolean {
    return this.#session !== undefined;
  }

  /** Whether the broker announces its limits and reports which message it refused: MQTT 3.1.1 has no means to. */
  override get reports_refusals(): boolean {
    return this.#session?.protocol === '5';
  }

  /** Runs until `signal` aborts and the connection is closed. */
  override async run(signal: AbortSignal): Promise<void> {
    const { broker, random = Math.random } = this.#parts;
    const now = (): number => performance.now();
    const protocol = new ProtocolChoice(broker.protocol, now);
    await keepConnected(
      {
        protocol: () => protocol,
        retry: service_retry,
        now,
        random,
        onAttempt: () => undefined,
        open: async (version, stop) => this.#open(version, stop),
        serve: async (session, stop) => this.#serve(session, stop),
        onFailed: (error, { isOtherVersionDue }) => {
          if (!isOtherVersionDue) this.#logDown(messageOf(error));
          return 'later';
        },
      },
      signal,
    );
  }

  protected override async publish(order: Order): Promise<boolean> {
    const session = this.#session;
    if (!session) throw new Error(texts.service_not_connected);
    const leave = await this.#room.take();
    const answered = session.publishAndWait({ retain: false, ...order }).finally(leave);
    const puback = await within(puback_ms, answered);
    if (!puback) throw new OutcomeUnknown(texts.broker_silent);
    if (puback.code >= 0x80) throw new MessageRefused(puback.code, puback.reason);
    return puback.code !== no_subscriber;
  }

  async #open(protocol: ProtocolVersion, signal: AbortSignal): Promise<Session> {
    const { client_id, share, log, openTransport, renew } = this.#parts;
    const broker = (await renew?.()) ?? this.#parts.broker;
    return openSession(
      {
        broker,
        client_id,
        protocol,
        openTransport,
        // A session of a removed replica would hold messages that no other replica receives.
        session_expiry_s: share === undefined ? session_expiry_s : 0,
        receive_maximum,
        packet_bytes_max,
        unhandled_max: receive_maximum,
        onMessage: async (message) => {
          await this.#parts.shareCheck?.pass(message);
          await this.#receiver.receive(message);
          return true;
        },
        onOversize: ({ topic, bytes }) => {
          log.warn({ topic, bytes }, texts.log_too_large);
          void this.#receiver
            .refuse(topic, texts.message_too_large(bytes, payload_bytes_max))
            .catch(() => undefined);
        },
      },
      signal,
    );
  }

  /** Serves one session until it ends or `signal` aborts. */
  async #serve(session: Session, signal: AbortSignal): Promise<'later'> {
    const { broker, share, log } = this.#parts;
    const refusal = (): Error => new Error(texts.broker_silent);
    this.#room = new Semaphore(session.receive_maximum, { wait_max_ms: puback_ms, refusal });
    try {
      // Its answer to the subscription that it has kept stands behind all that it has queued: tasks need not wait for that.
      if (session.session_present) this.#session = session;
      await subscribe(session, share === undefined ? upFilter : `$share/${share}/${upFilter}`);
      this.#session = session;
      this.#isDownLogged = false;
      this.#parts.count?.('connected');
      log.info({ broker: wayTo(broker), protocol: session.protocol }, texts.log_connected);
      const ends = new AbortController();
      if (share !== undefined) void this.#followShare(session, AbortSignal.any([signal, ends.signal]));
      await Promise.race([session.closed, aborted(signal)]);
      ends.abort();
      if (!signal.aborted) this.#logDown(await session.closed);
    } catch (error) {
      if (!signal.aborted) this.#logDown(messageOf(error));
    }
    this.#session = undefined;
    await session.end();
    return 'later';
  }

  async #followShare(session: Session, signal: AbortSignal): Promise<void> {
    await this.#sweep(session, signal);
    const subscriptions = {
      subscribe: async (filter: string) => subscribe(session, filter),
      unsubscribe: async (filter: string) => session.unsubscribe(filter),
      gives_retained: session.protocol === '5' && session.retains,
    };
    await this.#parts.shareCheck?.run(subscriptions, signal);
  }

  /**
   * Reads the retained state of all kits once at each connect: a shared subscription delivers no retained messages (MQTT 5,
   * section 4.8.2), and messages in flight to a crashed replica are lost. What other replicas have stored counts once.
   */
  async #sweep(session: Session, signal: AbortSignal): Promise<void> {
    try {
      for (const filter of retainedFilters) await subscribe(session, filter);
      await within(this.#parts.sweep_ms ?? sweep_default_ms, session.closed, signal);
      for (const filter of retainedFilters) await session.unsubscribe(filter);
    } catch (error) {
      // A connection that ended is reported where it is served.
      if (this.#session === session)
        this.#parts.log.warn({ reason: messageOf(error) }, texts.log_retained_failed);
    }
  }

  #logDown(reason: string): void {
    if (this.#isDownLogged) return;
    this.#isDownLogged = true;
    const { broker, log } = this.#parts;
    log.warn({ broker: wayTo(broker), reason }, texts.log_connect_failed);
  }
}

/** Subscribes, and rejects when the broker refuses. Without `rap` only retained messages carry the retain flag. */
async function subscribe(session: Session, filter: string): Promise<void> {
  const refused = await session.subscribe([filter], { rap: false });
  const code = refused.get(filter);
  if (code === undefined) return;
  throw new Error(texts.subscription_refused(filter, codeInWords(code), reasonOf(code).remedy));
}
