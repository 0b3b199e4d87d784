/** The kit's use of its session to the broker: publishes that the kit is there, drains the outbox, and receives what the cloud sends. */
import { messageOf } from '../../platform/errors.ts';
import { channels, upTopic } from '../../contract/topics.ts';
import { type WhepAnswer, whep_expiry_s } from '../../contract/whep.ts';
import type { AckRule } from '../outbox/api.ts';
import type { Dispatch } from '../outbox/live/dispatch.ts';
import type { Clock } from '../../platform/clock.ts';
import type { BrokerOptions, ProtocolVersion } from '../../mqtt/broker.ts';
import { codeInWords, codeOfMqtt5 } from '../../mqtt/codes.ts';
import { ConnectFailed } from '../../mqtt/connect-failed.ts';
import { keepConnected, ProtocolChoice, type RetrySpans } from '../../mqtt/reconnect.ts';
import { wayTo } from '../../mqtt/proxy.ts';
import { openSession, type Session } from '../../mqtt/session.ts';
import type { BrokerSocket, OpenTransport } from '../../mqtt/socket.ts';
import { brokerPlace } from '../../platform/broker-address.ts';
import { profileOf } from '../../platform/broker-profiles.ts';
import type { Routes } from '../../platform/linux/route-lookup.ts';
import { aborted, every, sleep, within } from '../../platform/time.ts';
import { acceptsKit, BrokerChoice } from './broker-choice.ts';
import { BrokerLimits, LargePackets } from './broker-limits.ts';
import { ConnectionState, type ConnectionStatus, type UplinkLog } from './connection-state.ts';
import { Inbox, type InboxHandlers, noteTooLarge } from './inbox.ts';
import { introduce, Presence, type StateData } from './presence.ts';
import { Path } from './path.ts';
import { Credentials } from './credentials.ts';
import { Problems, session_taken_over, Suspicion, Takeovers, Undelivered } from './problems.ts';
import { type Acknowledged, type Pace, Sender } from './sender.ts';
import { texts } from './texts.ts';
import { Throttle } from './throttle.ts';

/** Down messages that the broker may send before it must wait for a PUBACK. */
const receive_maximum = 16;
/** The largest packet that a broker may send: a payload of 256 KiB, its topic and its properties. */
const packet_bytes_max = 258 * 1024;
const session_expiry_s = 86_400;
/** Brokers that restart or links that flap for less than this do not make the kit look offline. */
const will_delay_s = 20;
/** At a clean stop, messages that are under way get so long. */
const flush_at_stop_ms = 2_000;
const farewell_ms = 2_000;
const flush_poll_ms = 20;
const state_look_ms = 1_000;
const credentials_look_ms = 60_000;
/** A connection that has held for so long does not end at its next message by chance. */
const retained_again_ms = 10_000;
/** Message rate too high, quota exceeded. */
const rate_codes: ReadonlySet<number> = new Set([0x96, 0x97]);
const retain_not_supported = 0x9a;
const not_authorized = 0x87;
/** What a broker does not keep is published again after this time. */
const repeat_ms = 900_000;
/** Topic and header of the state message. */
const state_overhead_bytes = 100;

export interface UplinkOptions {
  readonly kit_id: string;
  readonly broker: BrokerOptions & {
    readonly ack: AckRule;
    /** Used in this order where it does not work. */
    readonly others?: readonly BrokerOptions[];
    /** Hosts, with the names below them, that a broker may send the kit on to, beside its own domain. */
    readonly redirect_to?: readonly string[];
  };
  /** A broker with its credentials as they are on disk now; left out: they stay. */
  readonly renew?: ((broker: BrokerOptions) => Promise<BrokerOptions>) | undefined;
  readonly pace: Pace;
  readonly retry: RetrySpans;
  /** Left out: `Math.random`. Spreads the attempts of many kits. */
  readonly random?: (() => number) | undefined;
  /** Monotonic time; left out: that of the process. */
  readonly now?: (() => number) | undefined;
  /** The outbox's current one. */
  readonly epoch: () => number;
  /** Time until the first attempt, when an earlier start may have chosen the same epoch; left out: none. */
  readonly wait_ms?: number | undefined;
  readonly clock: Pick<Clock, 'stamp' | 'untilSet'>;
  readonly dispatch: Dispatch;
  readonly inbox: InboxHandlers;
  /** Data of the state message: birth when online, will or farewell when not. */
  readonly state: (how: { readonly online: boolean; readonly reason: string | null }) => StateData;
  /** After every connect, once the backlog may drain. `session_present: false`: the broker may know nothing of us. */
  readonly onConnected: (how: { readonly session_present: boolean }) => void;
  /** Receives every PUBACK. */
  readonly onAcknowledged?: ((message: Acknowledged) => void) | undefined;
  readonly log: UplinkLog;
  /** The kernel's routing; left out: a changed route is noticed by the silence of the broker. */
  readonly routes?: Routes | undefined;
  /** Left out: sockets of the operating system. */
  readonly openTransport?: OpenTransport | undefined;
}

/** What was learnt about one broker in this run. */
interface Learnt {
  readonly limits: BrokerLimits;
  readonly throttle: Throttle;
  readonly protocol: ProtocolChoice;
  readonly suspicion: Suspicion;
}

/** Brokers that something was learnt about. More than are configured come by redirection. */
const learnt_max = 16;

export interface UplinkStatus extends ConnectionStatus {
  readonly in_flight: number;
  readonly rtt_ms: number | null;
}

export class Uplink {
  readonly #options: UplinkOptions;
  readonly #now: () => number;
  readonly #state: ConnectionState;
  readonly #presence: Presence;
  readonly #problems: Problems;
  readonly #choice: BrokerChoice;
  /** By address. */
  readonly #learnt = new Map<string, Learnt>();
  /** Address of the broker that served the kit last. */
  #served_by: string | undefined;
  /** The trial connection to the first broker, beside the session with another one. */
  #trial: 'none' | 'begun' | 'accepted' = 'none';
  readonly #takeovers: Takeovers;
  readonly #undelivered: Undelivered;
  readonly #path: Path | undefined;
  readonly #large_packets: LargePackets;
  readonly #credentials: Credentials;
  /** Sessions of releases before 1.1 of the contract have a subscription with a wildcard over everything. */
  #is_old_filter_gone = false;
  /**
   * What the broker keeps of the kit may be missing. So it is until a connection found its session and came to be served:
   * that connection may have ended before, and an earlier run may have.
   */
  #is_forgotten = true;
  /** The session was given up because another would do better, on another route or with small packets. */
  #is_next_due = false;
  #sender: Sender | undefined;
  #session: Session | undefined;

  constructor(options: UplinkOptions) {
    const now = options.now ?? (() => performance.now());
    this.#options = options;
    this.#now = now;
    this.#state = new ConnectionState({ ...options, way: () => this.way, now });
    this.#problems = new Problems(now, options.log);
    const { others = [], redirect_to = [] } = options.broker;
    this.#choice = new BrokerChoice({
      brokers: [options.broker, ...others],
      redirect_to,
      now,
      routeChanged_ms: () => this.#path?.changed_ms ?? null,
      problems: this.#problems,
      log: options.log,
    });
    this.#takeovers = new Takeovers(now, this.#problems);
    this.#undelivered = new Undelivered(now, this.#problems);
    this.#presence = new Presence({ ...options, now });
    this.#path = options.routes && new Path({ ...options, routes: options.routes, now });
    this.#credentials = new Credentials(options.renew ?? (async (broker) => broker), this.#problems);
    this.#large_packets = new LargePackets({
      now,
      problems: this.#problems,
      link: () => this.carrier,
      changed_ms: () => this.#path?.changed_ms ?? null,
    });
  }

  get online(): boolean {
    return this.#state.online;
  }

  /** Address of the broker that is used. */
  get broker_url(): string {
    return this.#choice.current.url;
  }

  /** The same with the proxy before it, for people. */
  get way(): string {
    return wayTo(this.#choice.current);
  }

  /** Interface that the packets of the session leave by; null: no session, or not known. */
  get interface(): string | null {
    return this.#path?.interface ?? null;
  }

  /** Interface that packets to the broker leave by, with a session or of the next attempt; null: not known. */
  get carrier(): string | null {
    return this.#path?.carrier ?? null;
  }

  /** To be called when the link of `carrier` answers again after an outage: the next attempt is due. */
  linkIsBack(): void {
    this.#path?.linkIsBack();
  }

  /** What is wrong between kit and broker: a sentence each, with what to do. */
  problems(): readonly string[] {
    return this.#problems.sentences();
  }

  status(): UplinkStatus {
    const window = this.#sender?.window;
    return {
      ...this.#state.status(),
      in_flight: window?.in_flight ?? 0,
      rtt_ms: window?.rtt_ms ?? null,
    };
  }

  /** Publishes the answer to a viewer of video at once, outside the buffer; without a session it is of no use any more. */
  answerViewer(id: string, answer: WhepAnswer): void {
    const topic = upTopic(this.#options.kit_id, channels.whep(id));
    const message = { topic, payload: JSON.stringify(answer), retain: false, expiry_s: whep_expiry_s };
    this.#session?.publish(message, () => undefined);
  }

  /** Runs until `signal` aborts; then flushes within a deadline, publishes the farewell and resolves. */
  async run(signal: AbortSignal): Promise<void> {
    const { retry, random = Math.random } = this.#options;
    void this.#path?.run(signal);
    await this.#untilEpochIsOurs(signal);
    await keepConnected(
      {
        protocol: () => this.#known.protocol,
        retry,
        now: this.#now,
        random,
        open: async (protocol, stop) => this.#open(protocol, stop),
        serve: async (session, stop) => this.#serve(session, stop),
        hurry: () => this.#hurry(),
        onAttempt: () => {
          this.#choice.next();
          this.#state.attempt();
        },
        onFailed: (error, { isOtherVersionDue }) => this.#failed(error, isOtherVersionDue),
        pauseMax_ms: () => this.#choice.untilNext_ms,
        onPause: (pause_ms) => this.#state.waiting(pause_ms),
      },
      signal,
    );
    this.#state.stopped();
  }

  /** A kit without a clock of its own starts in the past, where the certificate of the broker is not valid yet (lf-edge/eve#1456). */
  #hurry(): AbortSignal {
    const signals = [this.#path?.hurry(), this.#options.clock.untilSet?.()];
    return AbortSignal.any(signals.filter((each) => each !== undefined));
  }

  /** Before that nothing of the epoch may reach the broker: what is accepted meanwhile waits in the buffer. */
  async #untilEpochIsOurs(signal: AbortSignal): Promise<void> {
    const { wait_ms = 0, log } = this.#options;
    if (wait_ms <= 0) return;
    log.warn({ wait_ms: Math.ceil(wait_ms) }, texts.epoch_unsure);
    this.#state.waiting(wait_ms);
    await sleep(wait_ms, signal);
  }

  /** What is known about the broker that is used. */
  get #known(): Learnt {
    const { url, protocol } = this.#choice.current;
    const known = this.#learnt.get(url);
    if (known) return known;
    const now = this.#now;
    const { publishes_per_s = 0, payload_bytes_max } = profileOf(brokerPlace(new URL(url)).host) ?? {};
    const learnt = {
      limits: new BrokerLimits(this.#problems, payload_bytes_max),
      throttle: new Throttle({
        now,
        configured: () => this.#options.pace.messagesPerSMax() || publishes_per_s,
        problems: this.#problems,
      }),
      protocol: new ProtocolChoice(protocol, now),
      suspicion: new Suspicion(),
    };
    this.#learnt.set(url, learnt);
    const [oldest] = this.#learnt.size > learnt_max ? this.#learnt.keys() : [];
    if (oldest !== undefined) this.#learnt.delete(oldest);
    return learnt;
  }

  #failed(error: unknown, isOtherVersionDue: boolean): 'at_once' | 'later' {
    this.#is_forgotten ||= mayHaveBegun(error);
    if (isOtherVersionDue) {
      this.#state.otherVersion(error);
      return 'at_once';
    }
    const failure = error instanceof ConnectFailed ? error : undefined;
    const { limits } = this.#known;
    if (failure?.code !== undefined) limits.refused(failure.code);
    if (failure?.stage === 'closed' || isNotAuthorized(failure)) limits.endedAtWill();
    const said = this.#inContext(error);
    this.#state.failed(said);
    return this.#choice.failed(messageOf(said), {
      code: failure?.code,
      server_reference: failure?.server_reference,
    });
  }

  /** What has served the kit needs no other port and no TLS. */
  #inContext(error: unknown): unknown {
    const isUnanswered =
      error instanceof ConnectFailed && (error.stage === 'closed' || error.stage === 'silent');
    if (!isUnanswered || this.#served_by !== this.broker_url) return error;
    return new ConnectFailed(texts.serves_no_more, error.stage);
  }

  async #open(protocol: ProtocolVersion, signal: AbortSignal): Promise<Session> {
    const { kit_id, inbox: handlers, log } = this.#options;
    const broker = await this.#credentials.read(this.#choice.current);
    const { limits } = this.#known;
    const opened: { session?: Session } = {};
    const inbox = new Inbox({
      kit_id,
      handlers: {
        ...handlers,
        sync: () => this.#repeat(),
        ack: (stored) => {
          this.#undelivered.stored(stored);
          return handlers.ack(stored);
        },
      },
      log,
      now: this.#now,
      onRoom: () => opened.session?.destroy('fetching the dispatches that were left at the broker'),
    });
    const end = (
      tcp: BrokerSocket,
      reason: string,
      { isOtherDue }: { readonly isOtherDue: boolean },
    ): void => {
      this.#is_next_due = isOtherDue;
      if (opened.session) opened.session.destroy(reason);
      // MQTT.js reports no error without a code.
      else tcp.destroy(Object.assign(new Error(reason), { code: 'EMSGSIZE' }));
    };
    limits.begin();
    const will = this.#presence.will({ compact: limits.compact, retain: limits.retains });
    const session = await openSession(
      {
        broker,
        client_id: kit_id,
        protocol,
        session_expiry_s,
        receive_maximum,
        packet_bytes_max,
        will: { ...will, delay_s: will_delay_s },
        onMessage: async (message) => inbox.receive(message),
        onOversize: (message) => noteTooLarge(message, this.#problems),
        openTransport:
          this.#options.openTransport ??
          (async (endpoint, stop) => this.#large_packets.open(endpoint, stop, end)),
      },
      signal,
    );
    opened.session = session;
    inbox.connected(session);
    return session;
  }

  /** Serves one session until it ends or `signal` aborts. While a culprit is searched, the next one should follow soon. */
  async #serve(session: Session, signal: AbortSignal): Promise<'at_once' | 'soon' | 'later'> {
    const from_ms = this.#now();
    const { url } = this.#choice.current;
    const { suspicion } = this.#known;
    this.#is_next_due = false;
    suspicion.connected();
    // What another broker has acknowledged, this one does not have, whatever session of ours it kept.
    const isOther = this.#served_by !== undefined && this.#served_by !== url;
    this.#is_forgotten ||= isOther || !session.session_present;
    this.#served_by = url;
    const reason = await this.#untilItEnds(session, signal);
    if (signal.aborted) return 'later';
    const held_ms = this.#now() - from_ms;
    const without_a_word = session.closed_silently;
    const { disconnect_code, server_reference } = session;
    this.#state.lost(reason, held_ms);
    if (this.#hasMoved()) return 'at_once';
    this.#takeovers.ended({ code: disconnect_code, held_ms, without_a_word });
    const next = this.#choice.ended(held_ms, reason, { code: disconnect_code, server_reference });
    if (this.#is_next_due || next === 'at_once') return 'at_once';
    // A connection that carried a message was a good one: what ended it says nothing of the next.
    const hasCarried = suspicion.hasAnswered && disconnect_code !== session_taken_over;
    return hasCarried || suspicion.isSearching ? 'soon' : 'later';
  }

  /** The first broker has accepted a trial connection. Where both names lead to one broker, that has ended the session already. */
  #hasMoved(): boolean {
    const isAccepted = this.#trial === 'accepted';
    this.#trial = 'none';
    if (isAccepted) this.#choice.backToFirst();
    return isAccepted;
  }

  /** Learns from the code of a refused message, or of a DISCONNECT. True: fewer messages a second are sent from now on. */
  #learn(code: number): boolean {
    const { throttle, limits } = this.#known;
    if (code === retain_not_supported) limits.refusedRetained();
    return rate_codes.has(code) && throttle.exceeded();
  }

  /** Resolves with the reason. */
  async #untilItEnds(session: Session, signal: AbortSignal): Promise<string> {
    const { dispatch } = this.#options;
    const ended = new AbortController();
    try {
      this.#followRoute(session, ended.signal);
      await this.#begin(session, signal);
      const sender = this.#drain(session, ended.signal);
      const reason = await Promise.race([
        session.closed,
        aborted(signal).then(() => 'stopped'),
        this.#untilFirstAccepts(ended.signal).then(() => texts.back_to_first),
      ]);
      if (signal.aborted || reason === texts.back_to_first) await this.#farewell(session, sender, reason);
      return reason;
    } catch (error) {
      if (!signal.aborted && !session.ended_by_us) this.#known.limits.ended();
      session.destroy(messageOf(error));
      return messageOf(error);
    } finally {
      ended.abort();
      const code = session.disconnect_code ?? 0;
      this.#learn(code);
      const mayBeMessage = !session.ended_by_us && !rate_codes.has(code) && code !== retain_not_supported;
      if (!signal.aborted && mayBeMessage) this.#blame(session);
      dispatch.disconnected();
      this.#sender = undefined;
      this.#session = undefined;
      this.#state.connecting();
    }
  }

  /** Resolves once another broker is used and the first one accepts the kit again; else never. */
  async #untilFirstAccepts(signal: AbortSignal): Promise<void> {
    const accepted = Promise.withResolvers<void>();
    every(state_look_ms, signal, () => {
      if (this.#trial !== 'none' || !this.#choice.isFirstDue) return;
      this.#choice.firstTried();
      void this.#tryFirst(accepted.resolve, signal);
    });
    return accepted.promise;
  }

  async #tryFirst(onAccepted: () => void, signal: AbortSignal): Promise<void> {
    const { kit_id, renew, openTransport } = this.#options;
    const { first } = this.#choice;
    this.#trial = 'begun';
    const isAccepted = await acceptsKit(
      {
        broker: (await renew?.(first)) ?? first,
        client_id: kit_id,
        protocol: this.#learnt.get(first.url)?.protocol.next() ?? '5',
        session_expiry_s,
        packet_bytes_max,
        openTransport,
      },
      () => (this.#trial = 'accepted'),
      signal,
    );
    // After the end of the session, its end has looked at the trial.
    if (signal.aborted) return;
    if (isAccepted) onAccepted();
    else this.#trial = 'none';
  }

  /** Its packets would leave by another interface, with an address that is not of it: the session is as good as lost. */
  #followRoute(session: Session, signal: AbortSignal): void {
    const { endpoints } = session;
    if (endpoints === null) return;
    const leave = (): void => {
      this.#is_next_due = true;
      session.destroy(texts.route_changed);
    };
    void this.#path?.follow(endpoints, leave, signal);
  }

  /** Subscribes and publishes the birth, before anything else is sent. */
  async #begin(session: Session, signal: AbortSignal): Promise<void> {
    const { kit_id, broker } = this.#options;
    const { limits } = this.#known;
    if (!limits.accepted(session)) throw new Error('the broker supports QoS 0 only');
    const birth = this.#presence.birth(session.packet_bytes_max - state_overhead_bytes);
    const options = {
      kit_id,
      publishBirth: async () => limits.publishBirth(session, birth),
      timeout_ms: broker.connect_timeout_ms,
      drops_old_filter: !this.#is_old_filter_gone,
      problems: this.#problems,
    };
    await introduce(session, options, signal);
    this.#is_old_filter_gone = true;
    this.#state.connected(session);
    this.#choice.connected();
  }

  /** Drains the outbox until `signal` aborts. */
  #drain(session: Session, signal: AbortSignal): Sender {
    const { dispatch, pace, broker, kit_id, onAcknowledged, onConnected } = this.#options;
    const { suspicion, throttle, limits } = this.#known;
    const sender = new Sender(
      {
        kit_id,
        session,
        dispatch,
        pace,
        suspicion,
        throttle,
        onWithheld: () => (this.#is_next_due = true),
        onRefused: (code) => {
          if (code === retain_not_supported) session.retains = false;
          return this.#learn(code);
        },
        now: this.#now,
        onAcknowledged: (message) => onAcknowledged?.(message),
        onDelivered: (outgoing) => {
          if (session.protocol === '3.1.1') this.#undelivered.delivered(outgoing);
        },
      },
      signal,
    );
    this.#sender = sender;
    this.#session = session;
    const session_present = !this.#is_forgotten;
    dispatch.connected({
      session_present,
      packet_ms: this.#packetMs(),
      ack: broker.ack,
      onReady: () => sender.wake(),
    });
    every(state_look_ms, signal, () => this.#lookAtState(session));
    every(repeat_ms, signal, () => {
      if (!session.retains) this.#repeat();
    });
    every(credentials_look_ms, signal, () => void this.#lookAtCredentials(session));
    if (limits.isUnsure) void this.#tryRetained(session, signal);
    onConnected({ session_present });
    this.#is_forgotten = false;
    return sender;
  }

  /** Once the broker shows that it keeps them, everything is repeated, in a connection whose will is retained too. */
  async #tryRetained(session: Session, signal: AbortSignal): Promise<void> {
    await sleep(retained_again_ms, signal);
    if (signal.aborted) return;
    const birth = this.#presence.birth(session.packet_bytes_max - state_overhead_bytes);
    if (!(await this.#known.limits.tryRetained(session, birth))) return;
    this.#repeat();
    await session.end('renewing presence as a retained message');
  }

  /** The broker hung up: a message that proves to be the cause must not be sent again. */
  #blame(session: Session): void {
    const culprit = this.#known.suspicion.hungUp(this.#sender?.in_flight ?? [], session.disconnect_code);
    if (!culprit) return;
    const code = session.disconnect_code;
    const how = code === undefined ? '' : `: ${codeInWords(code)}`;
    this.#options.dispatch.hungUp(culprit, `the broker ended the connection when this was sent${how}`);
  }

  /** Waits a little for what is under way, then publishes the farewell. If the broker does not take it in time, its will is left to speak. */
  async #farewell(session: Session, sender: Sender, reason: string): Promise<void> {
    const over = new AbortController();
    const closed = session.closed.then(() => over.abort());
    await within(
      flush_at_stop_ms,
      Promise.race([closed, untilIdle(sender, this.#options.dispatch, over.signal)]),
    );
    over.abort();
    const taken = await within(farewell_ms, session.publishAndWait(this.#presence.farewell(reason))).catch(
      () => undefined,
    );
    if (taken) await session.end(reason);
    else session.destroy(reason);
  }

  /** Everything that a cloud which has just come needs. */
  #repeat(): void {
    this.#options.inbox.sync();
    this.#presence.ask();
  }

  #packetMs(): number {
    return Math.max(this.#options.pace.packetMs(), this.#known.throttle.packet_ms);
  }

  /** Leaves while the old ones still count, so that the broker does not end the connection. */
  async #lookAtCredentials(session: Session): Promise<void> {
    if (!(await this.#credentials.isRenewalDue())) return;
    this.#is_next_due = true;
    void session.end(texts.credentials_renewed);
  }

  /** Publishes the state again when it has changed, and follows the pace of the link in use. */
  #lookAtState(session: Session): void {
    this.#options.dispatch.setPacketMs(this.#packetMs());
    if (this.#presence.isOutdated) {
      void session.end('renewing presence for a new epoch');
      return;
    }
    const state = this.#presence.due();
    if (state) session.publish(state, () => undefined);
  }
}

async function untilIdle(sender: Sender, dispatch: Dispatch, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && (sender.window.in_flight > 0 || dispatch.live_rows > 0))
    await sleep(flush_poll_ms, signal);
}

function isNotAuthorized(failure: ConnectFailed | undefined): boolean {
  return failure?.code !== undefined && codeOfMqtt5(failure.code) === not_authorized;
}

/** The broker may have begun a session without a CONNACK: the next CONNACK would report it as present. */
function mayHaveBegun(error: unknown): boolean {
  return error instanceof ConnectFailed && (error.stage === 'closed' || error.stage === 'silent');
}
