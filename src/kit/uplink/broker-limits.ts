/** What a broker does not offer, as its CONNACK or its refusal shows, and how the kit gets by without it. */
import { codeOfMqtt5 } from '../../mqtt/codes.ts';
import type { Outgoing, Session } from '../../mqtt/session.ts';
import type { Problems } from './problems.ts';
import { texts } from './texts.ts';
import { broker_addresses } from '../../mqtt/broker-addresses.ts';
import {
  type BrokerEndpoint,
  type BrokerSocket,
  nextPlace,
  openTransport,
  type OwnSocket,
  type Transport,
} from '../../mqtt/socket.ts';
import { knockTcp } from '../../platform/linux/bound-tcp.ts';
import { type SegmentLook, type Segments, segments } from '../../platform/linux/tcp-info.ts';
import { descriptorOf } from '../../platform/linux/unsent-bytes.ts';
import { every } from '../../platform/time.ts';

const code = {
  not_authorized: 0x87,
  packet_too_large: 0x95,
  retain_not_supported: 0x9a,
  qos_not_supported: 0x9b,
} as const;
/** Access rules may be about retained messages alone. A quota, or a broker that is busy, is not about them. */
const retained_refusals: ReadonlySet<number> = new Set([code.not_authorized, code.retain_not_supported]);

/** Connections in a row that ended before the retained will or birth was answered; the next one has neither. */
const ends_until_trial = 2;

/**
 * Some brokers end the connection at a retained message without a word: those of MQTT 3.1.1 have no code for it, and AWS IoT Core
 * does so where the policy lacks `iot:RetainPublish`. So a connection without any is tried; only the same message, answered when it
 * is not retained and not when it is, shows that.
 */
export class BrokerLimits {
  readonly #problems: Problems;
  readonly #payload_bytes_max: number;
  #ends_in_a_row = 0;
  #is_trial = false;
  /** How the birth was published that the broker has not answered yet. */
  #unanswered: 'as_is' | 'retained_after_plain' | undefined;
  #retains = true;
  /**
   * As it showed at a message, whatever its CONNACK says; `inferred`: without a word of the broker, which a link that cuts each
   * connection early looks like; `shown`: it said so, or ended a connection that had held before.
   */
  #refusesRetained: 'inferred' | 'shown' | undefined;
  #compact = false;

  /** `payload_bytes_max`: as the documents of the broker say; left out: what it announces. */
  constructor(problems: Problems, payload_bytes_max = Infinity) {
    this.#problems = problems;
    this.#payload_bytes_max = payload_bytes_max;
  }

  begin(): void {
    this.#is_trial = !this.#refusesRetained && this.#ends_in_a_row >= ends_until_trial;
  }

  /** Whether the will may be retained. */
  get retains(): boolean {
    return this.#retains && !this.#is_trial;
  }

  /** Publishes the birth, retained where the broker takes that. Resolves with the code of the answer. */
  async publishBirth(session: Pick<Session, 'retains' | 'publishAndWait'>, birth: Outgoing): Promise<number> {
    this.#unanswered = 'as_is';
    if (this.#is_trial && session.retains) {
      session.retains = false;
      // Refused or not: it is answered.
      await session.publishAndWait(birth);
      this.#unanswered = 'retained_after_plain';
      session.retains = true;
    }
    let { code: answer } = await session.publishAndWait(birth);
    if (answer === code.retain_not_supported) {
      this.refusedRetained();
      session.retains = false;
      answer = (await session.publishAndWait(birth)).code;
    }
    this.#unanswered = undefined;
    this.#ends_in_a_row = 0;
    return answer;
  }

  /** The broker ended a connection, or refused it without saying that a retained will is why. */
  ended(): void {
    if (this.#unanswered === 'retained_after_plain') this.refusedRetained('inferred');
    else if (this.#unanswered === 'as_is' && this.#refusesRetained === 'inferred') {
      // Nothing was retained in this one: connections end for another reason.
      this.#refusesRetained = undefined;
      this.#retains = true;
    } else if (this.#unanswered === 'as_is') this.endedAtWill();
    this.#unanswered = undefined;
  }

  /** Whether a connection that has held is to be asked with `tryRetained`. */
  get isUnsure(): boolean {
    return this.#refusesRetained === 'inferred';
  }

  /** Publishes a retained message in a connection that has held. True: the broker took it, and takes them from now on. */
  async tryRetained(
    session: Pick<Session, 'retains' | 'publishAndWait' | 'ended_by_us'>,
    message: Outgoing,
  ): Promise<boolean> {
    session.retains = true;
    const answer = await session.publishAndWait(message).catch(() => undefined);
    const isTaken = answer !== undefined && answer.code < 0x80;
    session.retains = isTaken;
    if (isTaken) {
      this.#refusesRetained = undefined;
      this.#retains = true;
      this.#problems.clear('retain');
    } else if (answer ? retained_refusals.has(answer.code) : !session.ended_by_us) this.refusedRetained();
    return isTaken;
  }

  /** The same, before the CONNACK. */
  endedAtWill(): void {
    this.#ends_in_a_row = this.#is_trial ? 0 : this.#ends_in_a_row + 1;
  }

  /** Whether the will must be as small as possible. */
  get compact(): boolean {
    return this.#compact;
  }

  /** The broker refused a retained message, or ended the connection for it. */
  refusedRetained(how: 'inferred' | 'shown' = 'shown'): void {
    this.#refusesRetained = how;
    this.refused(code.retain_not_supported);
  }

  /** Learns from a CONNACK that refused. */
  refused(reason_code: number): void {
    switch (codeOfMqtt5(reason_code)) {
      case code.retain_not_supported:
        this.#retains = false;
        this.#noRetain();
        break;
      case code.packet_too_large:
        this.#compact = true;
        break;
      case code.qos_not_supported:
        this.#noQos();
        break;
      default:
        break;
    }
  }

  /** Learns from a CONNACK that accepted. False: the broker cannot serve the kit. */
  accepted(
    session: Pick<Session, 'retains' | 'qos_max' | 'announces_no_room' | 'packet_bytes_max'>,
  ): boolean {
    session.packet_bytes_max = Math.min(session.packet_bytes_max, this.#payload_bytes_max);
    if (this.#refusesRetained) session.retains = false;
    this.#retains = session.retains;
    if (session.retains) this.#problems.clear('retain');
    else this.#noRetain();
    if (session.qos_max === 0) {
      this.#noQos();
      return false;
    }
    this.#problems.clear('qos');
    if (session.announces_no_room) {
      this.#problems.note('receive_maximum', {
        sentence:
          'broker announced Receive Maximum 0, which MQTT 5 forbids: messages are sent one at a time; correct its settings',
        line: texts.receive_maximum_0,
      });
    } else this.#problems.clear('receive_maximum');
    return true;
  }

  #noRetain(): void {
    this.#problems.note('retain', {
      ...(this.isUnsure ? texts.retain_unsure : texts.no_retain),
    });
  }

  #noQos(): void {
    this.#problems.note('qos', {
      sentence:
        'broker supports QoS 0 only: nothing is sent, since it would get lost; allow QoS 1 at the broker',
      line: texts.qos_0_only,
    });
  }
}

const look_ms = 500;
/** A connection is ended after so many looks in a row with a missing segment, where small packets are answered. */
const looks_max = 6;
/** The wait for the answer to a small packet: a handshake with the broker's port. */
const knock_ms = 3_000;
/** Connections with a loss, while none held for `held_ms`. One is enough once the hole is known. */
const losses_max = 2;
const held_ms = 60_000;
/** A route that has just changed loses what was under way, large or small, and answers the small packet that follows. */
const settled_ms = 10_000;
/** Then a connection tries large segments again. */
const limit_ms = 3_600_000;

interface Limit {
  readonly until_ms: number;
  /** Interface that leads to the broker; null: not known. */
  readonly link: string | null;
  readonly mtu: number;
}

interface LargePacketsOptions {
  /** Monotonic time. */
  readonly now: () => number;
  readonly problems: Pick<Problems, 'note' | 'clear'>;
  /** Interface that leads to the broker. */
  readonly link: () => string | null;
  /** When the route to the broker changed last, monotonic; null: never. */
  readonly changed_ms: () => number | null;
  /** Left out: those of the kernel. */
  readonly load?: () => Promise<Segments>;
  readonly knock?: typeof knockTcp;
  readonly look_ms?: number;
}

/**
 * Finds a path to the broker that loses large packets without a word (an MTU hole): small ones are answered, so links and probes look
 * well, while each session ends at its first large message. Connections have small segments then, and the kit names the remedy.
 */
export class LargePackets {
  readonly #options: LargePacketsOptions;
  #segments: Segments | undefined;
  #losses = 0;
  #limit: Limit | undefined;
  /** The last attempt with small segments, which tries one address only, was not connected. */
  #is_unconnected = false;

  constructor(options: LargePacketsOptions) {
    this.#options = options;
  }

  /**
   * Connects to the broker. `end` is called with the reason when its connection is of no use; `isOtherDue`: the next one may
   * be of use, since it has packets of another size.
   */
  async open(
    endpoint: BrokerEndpoint,
    signal: AbortSignal,
    end: (tcp: BrokerSocket, reason: string, how: { readonly isOtherDue: boolean }) => void,
  ): Promise<Transport> {
    void this.#load();
    const { host } = nextPlace(endpoint);
    const own = this.#ownSocket(host);
    this.#is_unconnected = own !== undefined;
    const onTcp = (tcp: BrokerSocket): void => {
      tcp.once('connect', () => (this.#is_unconnected = false));
      this.#watch(tcp, host, (reason) => {
        // Where even small packets are lost, the hole is smaller than these: nothing but its remedy helps.
        const isOtherDue = own === undefined || this.#limit === undefined;
        end(tcp, reason, { isOtherDue });
      });
    };
    return openTransport(endpoint, signal, { own, onTcp });
  }

  /** Without the kernel's figures, nothing is recognised. */
  async #load(): Promise<void> {
    const { load = segments } = this.#options;
    this.#segments ??= await load().catch(() => undefined);
  }

  #ownSocket(host: string): OwnSocket | undefined {
    const limit = this.#limit;
    if (limit === undefined) return undefined;
    const link = this.#options.link();
    if (this.#options.now() > limit.until_ms || (link !== null && link !== limit.link)) this.#lift();
    const ip = broker_addresses.known(host);
    if (this.#limit === undefined || this.#is_unconnected || ip === undefined) return undefined;
    try {
      return this.#segments && { fd: this.#segments.openSmall(ip), ip };
    } catch {
      return undefined;
    }
  }

  #watch(socket: BrokerSocket, host: string, end: (reason: string) => void): void {
    const { now, link } = this.#options;
    const opened_ms = now();
    let began: string | null = null;
    const closed = new AbortController();
    let [looks, mtu] = [0, 0];
    /** Whether a small packet was answered while the segment was missing. */
    let answered = Promise.resolve(false);
    let isCounted = false;
    const forgetIfHeld = (): void => {
      if (now() - opened_ms > held_ms && this.#limit === undefined) this.#losses = 0;
    };
    const count = async (): Promise<boolean> => {
      if (!(await answered) || looks === 0 || this.#isMoving(began)) return false;
      looks = 0;
      forgetIfHeld();
      isCounted = true;
      this.#lost(host, mtu);
      return true;
    };
    every(this.#options.look_ms ?? look_ms, closed.signal, () => {
      const seen = this.#look(socket);
      if (seen === null) return;
      mtu = seen.mtu;
      began ??= link();
      looks = seen.isMissing ? looks + 1 : 0;
      if (looks === 1) answered = this.#knock(socket);
      if (looks === looks_max) void count().then((is) => (is ? end(texts.large_packets_lost) : (looks = 0)));
      if (this.#limit !== undefined && this.#limit.mtu !== mtu) {
        this.#lift();
        looks = 0;
        end(texts.mtu_changed);
      }
    });
    socket.once('close', () => {
      closed.abort();
      if (looks > 0) void count();
      else if (!isCounted) forgetIfHeld();
    });
  }

  /** The route has just changed, or the connection, which began over the link `began`, was left behind on another one. */
  #isMoving(began: string | null): boolean {
    const { changed_ms, link, now } = this.#options;
    const at_ms = changed_ms();
    return (at_ms !== null && now() - at_ms < settled_ms) || (began !== null && began !== link());
  }

  #look(socket: BrokerSocket): SegmentLook | null {
    const fd = descriptorOf(socket);
    return fd === null ? null : (this.#segments?.look(fd) ?? null);
  }

  async #knock({ remoteAddress, remotePort }: BrokerSocket): Promise<boolean> {
    if (remoteAddress === undefined || remotePort === undefined) return false;
    const { knock = knockTcp } = this.#options;
    const target = { host_ip: remoteAddress, port: remotePort, timeout_ms: knock_ms };
    const answer = await knock(target).catch(() => undefined);
    return answer !== undefined && 'rtt_ms' in answer;
  }

  #lost(host: string, mtu: number): void {
    const { now, problems, link: linkNow } = this.#options;
    this.#losses += 1;
    if (this.#losses < losses_max) return;
    const link = linkNow();
    this.#limit = { until_ms: now() + limit_ms, link, mtu };
    problems.note('large_packets', {
      sentence: texts.set_mtu(link, host),
      line: texts.small_packets,
      facts: { link, mtu },
    });
  }

  #lift(): void {
    this.#limit = undefined;
    this.#losses = losses_max - 1;
    this.#options.problems.clear('large_packets');
  }
}
