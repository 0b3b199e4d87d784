/**
 * One MQTT session from CONNECT to its end, over a fresh MQTT.js client: the publisher owns what is
 * in flight, and `reconnect.ts` owns what follows. MQTT.js would replay its own store one packet at a time, and gives up
 * permanently after some refusals.
 */
import type { IDisconnectPacket, MqttClient, Packet } from 'mqtt';
import { messageOf } from '../platform/errors.ts';
import { within } from '../platform/time.ts';
import type { ProtocolVersion } from './broker.ts';
import { codeInWords } from './codes.ts';
import { connectOnce, type Connection, type ConnectOptions, subscribeAll } from './connect.ts';
import { plainFault } from './faults.ts';
import { publishBytes, Publisher } from './publisher.ts';
import type { Endpoints, MqttStream } from './stream.ts';
import { texts } from './texts.ts';

/** MQTT 5 section 3.2.2.3: what a broker that does not announce them accepts. */
const receive_maximum_default = 65_535;
const packet_bytes_default = 268_435_455;
const end_timeout_ms = 1_000;
/** A broker that sends a queue of messages first answers behind them: so many times the wait for an answer, at most. */
const busy_waits_max = 8;
const granted_codes_max = 2;
/** MQTT 5 section 2.4. */
const packet_too_large = 0x95;

export interface Outgoing {
  readonly topic: string;
  readonly payload: string | Uint8Array;
  readonly retain: boolean;
  /** The broker forgets it after this time; MQTT 5 only. */
  readonly expiry_s?: number | undefined;
}

/**
 * The answer of the broker to a message. `code`: 0 accepted, 0x10 accepted without a subscriber, 0x80 and above refused
 * (MQTT 5 section 3.4.2.1); MQTT 3.1.1 knows only 0. `reason`: in words, empty unless refused.
 */
export interface Puback {
  readonly code: number;
  readonly reason: string;
}

/** The connection ended between a message and its PUBACK: the broker may have it. */
export class OutcomeUnknown extends Error {
  override readonly name = 'OutcomeUnknown';
}

export class Session {
  readonly protocol: ProtocolVersion;
  readonly session_present: boolean;
  readonly receive_maximum: number;
  /** As its CONNACK says, or less. */
  packet_bytes_max: number;
  /** Whether the broker keeps retained messages, as its CONNACK says; nothing is published as retained once this is false. */
  retains: boolean;
  readonly qos_max: number;
  /** Receive Maximum 0, which MQTT 5 forbids. */
  readonly announces_no_room: boolean;
  /** Resolves with the reason when the connection is over. */
  readonly closed: Promise<string>;

  readonly #client: MqttClient;
  readonly #stream: MqttStream;
  readonly #publisher: Publisher;
  readonly #answer_ms: number;
  #open = true;
  #ended_by_us = false;
  readonly #pings: (() => void)[] = [];
  /** Rejects each message that waits for its PUBACK; as many at most as there are packet identifiers. */
  readonly #waiting = new Set<(error: OutcomeUnknown) => void>();
  #disconnect_code: number | undefined;
  #server_reference: string | undefined;
  #reason: string | undefined;
  #closed_silently = false;

  /** `answer_ms`: the longest wait for the answer to a subscription. */
  constructor(connection: Connection, answer_ms: number) {
    const { client, stream, connack, disconnect, protocol } = connection;
    this.#client = client;
    this.#stream = stream;
    this.#answer_ms = answer_ms;
    this.protocol = protocol;
    this.session_present = connack.sessionPresent;
    const { receiveMaximum, maximumPacketSize, retainAvailable, maximumQoS } = connack.properties ?? {};
    this.receive_maximum = Math.max(1, receiveMaximum ?? receive_maximum_default);
    this.#publisher = new Publisher(connection, this.receive_maximum);
    this.announces_no_room = receiveMaximum === 0;
    this.packet_bytes_max = maximumPacketSize ?? packet_bytes_default;
    this.retains = retainAvailable ?? true;
    this.qos_max = maximumQoS ?? 2;
    client.on('packetreceive', ({ cmd }: Packet) => {
      if (cmd === 'pingresp') this.#pings.shift()?.();
    });
    client.on('disconnect', (packet) => this.#disconnected(packet));
    client.on('error', (error) => this.#failed(error));
    this.closed = new Promise((resolve) => {
      client.once('close', () => {
        this.#open = false;
        client.end(true);
        this.#closed_silently = this.#reason === undefined && !stream.failure;
        const reason = this.#reason ?? this.#why();
        for (const reject of this.#waiting) reject(new OutcomeUnknown(reason));
        this.#waiting.clear();
        resolve(reason);
      });
    });
    if (disconnect) this.#disconnected(disconnect);
  }

  /** This side ended it, or gave it up; else the broker or the network did. */
  get ended_by_us(): boolean {
    return this.#ended_by_us;
  }

  /** The broker closed the connection without a DISCONNECT, and the network had no fault. */
  get closed_silently(): boolean {
    return this.#closed_silently;
  }

  /** The reason code of the broker's DISCONNECT, if it sent one. */
  get disconnect_code(): number | undefined {
    return this.#disconnect_code;
  }

  /** The other server that it named, if it did. */
  get server_reference(): string | undefined {
    return this.#server_reference;
  }

  /** Monotonic time of the last byte from the broker. */
  get last_received_ms(): number {
    return this.#stream.last_received_ms;
  }

  /** Addresses of the connection; null once it is over. */
  get endpoints(): Endpoints | null {
    return this.#stream.endpoints;
  }

  /** A message above the limit is being skipped; what follows it has to wait. */
  get is_skipping(): boolean {
    return this.#stream.skipping !== undefined;
  }

  /** Publishes with QoS 1. `acked` is called once, unless the connection ends first. */
  publish({ topic, payload, retain, expiry_s }: Outgoing, acked: (puback: Puback) => void): void {
    const body = typeof payload === 'string' ? payload : asBuffer(payload);
    const message = { topic, body, retain: retain && this.retains, expiry_s };
    if (publishBytes(message, this.protocol) > this.packet_bytes_max) {
      acked({ code: packet_too_large, reason: codeInWords(packet_too_large) });
      return;
    }
    this.#publisher.publish(message, (answer) => {
      if (!this.#open) return;
      if (answer instanceof Error) return this.destroy(messageOf(answer));
      const { code, details } = answer;
      acked({ code, reason: code < 0x80 ? '' : codeInWords(code, details) });
    });
  }

  /** Publishes with QoS 1 and resolves with the PUBACK. Rejects with `OutcomeUnknown` if none comes before the end. */
  async publishAndWait(message: Outgoing): Promise<Puback> {
    if (!this.#open) throw new Error(texts.session_ended);
    return new Promise((resolve, reject) => {
      this.#waiting.add(reject);
      this.publish(message, (puback) => {
        this.#waiting.delete(reject);
        resolve(puback);
      });
    });
  }

  /** Requests a sign of life; `ponged` is called when it comes, unless the connection ends first. */
  ping(ponged: () => void): void {
    this.#pings.push(ponged);
    this.#client.sendPing();
  }

  /**
   * Subscribes with QoS 1; resolves with the reason codes of the filters that were refused. With `rap` (retain as
   * published, MQTT 5 only), a message shows whether it was published as retained; without, whether the broker had kept it.
   */
  async subscribe(
    filters: readonly string[],
    { rap }: { readonly rap: boolean },
  ): Promise<ReadonlyMap<string, number>> {
    const codes = await this.#answer(
      'subscription',
      subscribeAll(this.#client, filters, this.protocol === '5' && rap ? { rap } : {}),
    );
    return new Map(
      filters.flatMap((filter, n) => {
        const code = codes[n] ?? 0;
        return code > granted_codes_max ? [[filter, code] as const] : [];
      }),
    );
  }

  async unsubscribe(filter: string): Promise<void> {
    await this.#answer('end of a subscription', this.#client.unsubscribeAsync(filter));
  }

  /** Sends DISCONNECT and waits for the close, but not for long. `session_expiry_s`: replaces the one of CONNECT. */
  async end(reason = 'stopped', session_expiry_s?: number): Promise<void> {
    this.#ended_by_us = true;
    this.#reason ??= reason;
    const isChanged = session_expiry_s !== undefined && this.protocol === '5';
    const properties = isChanged ? { properties: { sessionExpiryInterval: session_expiry_s } } : {};
    const answered = Promise.race([this.#publisher.close(), this.closed]);
    const closed = answered.then(async () => {
      this.#client.end(false, properties);
      return this.closed;
    });
    if ((await within(end_timeout_ms, closed)) === undefined) this.destroy(reason);
  }

  /** Ends the connection at once, without a DISCONNECT. */
  destroy(reason: string): void {
    this.#ended_by_us = true;
    this.#reason ??= reason;
    this.#client.end(true);
    this.#stream.destroy();
  }

  /**
   * Rejects when the connection ends, or the broker does not answer in time. The time begins again with each byte: the answer
   * may stand behind thousands of queued messages, which are read no faster than they are handled.
   */
  async #answer<T>(what: string, answer: Promise<T>): Promise<T> {
    const ended = this.closed.then((reason) => Promise.reject(new Error(reason)));
    const answered = Promise.race([answer.then((it) => ({ it })), ended]);
    for (let waits = 0; waits < busy_waits_max; waits += 1) {
      const value = await within(this.#answer_ms, answered);
      if (value) return value.it;
      if (performance.now() - this.#stream.last_received_ms >= this.#answer_ms) break;
    }
    throw new Error(texts.request_unanswered(what));
  }

  #disconnected({ reasonCode = 0, properties }: IDisconnectPacket): void {
    this.#disconnect_code = reasonCode;
    this.#server_reference = properties?.serverReference;
    this.#reason ??= texts.ended_by_broker(codeInWords(reasonCode, properties));
    // Not all brokers close the connection behind it.
    this.#stream.destroy();
  }

  #why(): string {
    const { failure } = this.#stream;
    return failure ? messageOf(failure) : texts.closed_by_broker;
  }

  /** A failed socket closes without help. After an unreadable packet the connection is unusable. */
  #failed(error: Error): void {
    this.#reason ??= plainFault(error);
    if ('code' in error && typeof error.code === 'string') return;
    this.#client.end(true);
    this.#stream.destroy();
  }
}

function asBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

/** Connects once. Rejects with `ConnectFailed`. */
export async function openSession(options: ConnectOptions, signal: AbortSignal): Promise<Session> {
  const { connect_timeout_ms } = options.broker;
  return connectOnce(options, signal, (connection) => new Session(connection, connect_timeout_ms));
}
