/**
 * The connection to the broker, kept up for ever: connects, tells that the kit is there, drains the outbox, and starts
 * again after every loss with a growing, random pause.
 */
import { birthSeq, connection_lost, deathSeq } from '../contract/presence.ts';
import { channels, downFilter, upTopic } from '../contract/topics.ts';
import { writeEnvelope } from '../contract/envelope.ts';
import type { JsonObject } from '../contract/json.ts';
import { messageOf } from '../errors.ts';
import type { AckRule, Dispatch } from '../outbox/dispatch.ts';
import { aborted, backoff, sleep, within } from '../platform/time.ts';
import type { BrokerOptions } from './broker.ts';
import { receive, type InboxHandlers } from './inbox.ts';
import { type Acknowledged, Sender, type Pace } from './sender.ts';
import { Suspicion } from './suspicion.ts';
import { ConnectFailed, openSession, type Outgoing, type Session } from './session.ts';

/** The pause starts again at its shortest only after the connection has held for so long. */
const stable_after_ms = 60_000;
/** At a clean stop, messages that are under way get so long. */
const flush_at_stop_ms = 2_000;
const farewell_ms = 1_000;
const flush_poll_ms = 20;
/** CONNACK "unsupported protocol version", in MQTT 5 and in 3.1.1. */
const unsupported_version: ReadonlySet<number> = new Set([0x84, 1]);

/** MQTT 5 section 2.4. */
const unspecified_error = 0x80;

export interface UplinkLog {
  debug(facts: object, sentence: string): void;
  info(facts: object, sentence: string): void;
  warn(facts: object, sentence: string): void;
}

export interface UplinkOptions {
  readonly kit_id: string;
  readonly broker: BrokerOptions & { readonly ack: AckRule };
  readonly pace: Pace;
  readonly retry: { readonly first_ms: number; readonly max_ms: number };
  readonly epoch: number;
  readonly dispatch: Dispatch;
  readonly inbox: InboxHandlers;
  /** Data of the state message: birth when online, will or farewell when not. */
  readonly state: (how: { readonly online: boolean; readonly reason: string | null }) => JsonObject;
  /** After every connect, once the backlog may drain. `session_present: false`: the broker knows nothing of us. */
  readonly onConnected: (how: { readonly session_present: boolean }) => void;
  readonly log: UplinkLog;
}

export interface UplinkStatus {
  state: 'connected' | 'connecting' | 'waiting' | 'stopped';
  protocol: '5' | '3.1.1' | null;
  /** UTC of the last change of `state` from or to connected. */
  since_ms: number;
  attempts: number;
  next_try_ms: number | null;
  in_flight: number;
  rtt_ms: number | null;
  last_error: string | null;
}

export class Uplink {
  /** Told of every message that the broker acknowledged; set by who counts them. */
  onAcknowledged: (message: Acknowledged) => void = () => undefined;
  readonly #options: UplinkOptions;
  readonly #status: UplinkStatus = {
    state: 'connecting',
    protocol: null,
    since_ms: Date.now(),
    attempts: 0,
    next_try_ms: null,
    in_flight: 0,
    rtt_ms: null,
    last_error: null,
  };
  #protocol: '5' | '3.1.1';
  #connections = 0;
  #sender: Sender | undefined;
  readonly #suspicion = new Suspicion();
  /** Monotonic time since when the broker is away, once that was logged. */
  #down_since_ms: number | undefined;

  constructor(options: UplinkOptions) {
    this.#options = options;
    this.#protocol = options.broker.protocol === '3.1.1' ? '3.1.1' : '5';
  }

  get online(): boolean {
    return this.#status.state === 'connected';
  }

  status(): Readonly<UplinkStatus> {
    const window = this.#sender?.window;
    return { ...this.#status, in_flight: window?.in_flight ?? 0, rtt_ms: window?.rtt_ms ?? null };
  }

  /** Runs until `signal` aborts; then flushes within a deadline, says farewell and resolves. */
  async run(signal: AbortSignal): Promise<void> {
    let pauses = this.#newPauses();
    while (!signal.aborted) {
      const held_ms = await this.#once(signal);
      if (held_ms > stable_after_ms) pauses = this.#newPauses();
      if (signal.aborted) break;
      const pause_ms = pauses.next().value;
      this.#change('waiting', Date.now() + pause_ms);
      await sleep(pause_ms, signal);
    }
    this.#change('stopped', null);
  }

  /** One connection, from the attempt to its end; answers how long it held. */
  async #once(signal: AbortSignal): Promise<number> {
    this.#status.attempts += 1;
    this.#change('connecting', null);
    const started_ms = performance.now();
    let session: Session;
    try {
      session = await this.#connect(signal);
    } catch (error) {
      this.#connectFailed(error);
      return 0;
    }
    const reason = await this.#serve(session, signal);
    const held_ms = performance.now() - started_ms;
    if (!signal.aborted) this.#lost(reason, held_ms);
    return held_ms;
  }

  async #connect(signal: AbortSignal): Promise<Session> {
    const { kit_id, broker, inbox, log } = this.#options;
    this.#connections += 1;
    return openSession(
      {
        broker,
        client_id: kit_id,
        protocol: this.#protocol,
        will: this.#stateMessage(deathSeq(this.#connections), { online: false, reason: connection_lost }),
        onMessage: async (message) => receive(kit_id, message, inbox, log),
      },
      signal,
    );
  }

  #connectFailed(error: unknown): void {
    const { broker, log } = this.#options;
    const code = error instanceof ConnectFailed ? error.code : undefined;
    const old_broker = code !== undefined && unsupported_version.has(code);
    if (broker.protocol === 'auto' && this.#protocol === '5' && old_broker) {
      this.#protocol = '3.1.1';
      log.info({ broker: broker.url }, 'the broker does not speak MQTT 5: trying 3.1.1');
      return;
    }
    this.#status.last_error = messageOf(error);
    const facts = { broker: broker.url, reason: messageOf(error), attempts: this.#status.attempts };
    if (this.#down_since_ms !== undefined) log.debug(facts, 'the broker still does not take us');
    else if (code === undefined)
      log.warn(facts, 'the broker is not reachable: messages are kept until it is');
    else log.warn(facts, 'the broker refuses us: messages are kept; check user name, password and its rules');
    this.#down_since_ms ??= performance.now();
  }

  #lost(reason: string, held_ms: number): void {
    this.#status.last_error = reason;
    this.#options.log.warn(
      { reason, held_s: Math.round(held_ms / 1000) },
      'the connection to the broker was lost: messages are kept until it is back',
    );
    this.#down_since_ms ??= performance.now();
  }

  /** How long the broker was away, for the line that says that it is back. */
  #outage(): { readonly down_s?: number } {
    if (this.#down_since_ms === undefined) return {};
    return { down_s: Math.round((performance.now() - this.#down_since_ms) / 100) / 10 };
  }

  /** Serves one session until it ends or we are stopped; resolves with the reason. */
  async #serve(session: Session, signal: AbortSignal): Promise<string> {
    const { dispatch, pace, broker, kit_id, log } = this.#options;
    const ended = new AbortController();
    try {
      await this.#introduce(session);
      this.#change('connected', null);
      this.#status.protocol = session.protocol;
      const { protocol, session_present } = session;
      log.info(
        { broker: broker.url, protocol, session_present, ...this.#outage() },
        'connected to the broker',
      );
      this.#down_since_ms = undefined;
      this.#sender = new Sender(
        {
          kit_id,
          session,
          dispatch,
          pace,
          suspicion: this.#suspicion,
          onAcknowledged: (message) => this.onAcknowledged(message),
        },
        ended.signal,
      );
      await dispatch.connected({
        session_present: session.session_present,
        packet_ms: pace.packetMs(),
        ack: broker.ack,
      });
      this.#options.onConnected({ session_present: session.session_present });
      const reason = await Promise.race([session.closed, aborted(signal).then(() => 'stopped')]);
      if (signal.aborted) await this.#farewell(session, this.#sender);
      return reason;
    } catch (error) {
      session.destroy(messageOf(error));
      return messageOf(error);
    } finally {
      ended.abort();
      if (!signal.aborted && !session.ended_by_us) this.#blame(session);
      dispatch.onReady = () => undefined;
      dispatch.disconnected();
      this.#sender = undefined;
      if (this.#status.state === 'connected') this.#change('connecting', null);
    }
  }

  /** The broker hung up on us: if one message is the cause, it must not be sent again. */
  #blame(session: Session): void {
    const in_flight = this.#sender?.in_flight ?? [];
    const culprit = this.#suspicion.hungUp(session.misread ? in_flight.slice(0, 1) : in_flight);
    if (culprit)
      this.#options.dispatch.refused(culprit, unspecified_error, 'the broker hung up whenever this was sent');
  }

  /** Subscribes and publishes the birth, before anything else is sent. */
  async #introduce(session: Session): Promise<void> {
    const { kit_id, broker, log } = this.#options;
    const birth = this.#stateMessage(birthSeq(this.#connections), { online: true, reason: null });
    const introduced = (async () => {
      await session.subscribe(downFilter(kit_id));
      const code = await publishAndWait(session, birth);
      if (code >= 0x80)
        log.warn(
          { topic: birth.topic, code },
          "the broker refuses the kit's presence: check its access rules",
        );
      return true;
    })();
    const lost = session.closed.then((reason) => Promise.reject(new Error(reason)));
    const done = await within(broker.connect_timeout_ms, Promise.race([introduced, lost]));
    if (!done) throw new Error('the broker accepted the connection and then did not answer');
  }

  /** Waits a little for what is under way, then takes leave. */
  async #farewell(session: Session, sender: Sender): Promise<void> {
    const over = new AbortController();
    const closed = session.closed.then(() => over.abort());
    await within(
      flush_at_stop_ms,
      Promise.race([closed, untilIdle(sender, this.#options.dispatch, over.signal)]),
    );
    over.abort();
    const farewell = this.#stateMessage(deathSeq(this.#connections), { online: false, reason: 'stopped' });
    await within(farewell_ms, Promise.race([closed, publishAndWait(session, farewell)]));
    await session.end();
  }

  /** The state stands outside the outbox: its `seq` counts connections, 2n-1 for a birth and 2n for what ends it. */
  #stateMessage(seq: number, how: { readonly online: boolean; readonly reason: string | null }): Outgoing {
    const { kit_id, epoch, state } = this.#options;
    const payload = writeEnvelope({ time_ms: Date.now(), epoch, seq }, JSON.stringify(state(how)));
    return { topic: upTopic(kit_id, channels.state), payload, retain: true };
  }

  #newPauses(): Generator<number, never> {
    const { first_ms, max_ms } = this.#options.retry;
    return backoff(first_ms, max_ms);
  }

  #change(state: UplinkStatus['state'], next_try_ms: number | null): void {
    const was_online = this.online;
    this.#status.state = state;
    this.#status.next_try_ms = next_try_ms;
    if (was_online !== this.online) this.#status.since_ms = Date.now();
  }
}

/** Answers the PUBACK's reason code. */
async function publishAndWait(session: Session, message: Outgoing): Promise<number> {
  return new Promise((resolve) => {
    session.publish(message, resolve);
  });
}

async function untilIdle(sender: Sender, dispatch: Dispatch, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && (sender.window.in_flight > 0 || dispatch.live_rows > 0))
    await sleep(flush_poll_ms, signal);
}
