/**
 * One MQTT connection from CONNECT to its end, over a fresh MQTT.js client that keeps nothing: the outbox owns what is
 * in flight, and the supervisor owns reconnecting. MQTT.js would replay its own store one packet at a time, and gives up
 * for ever after some refusals.
 */
import {
  MqttClient,
  NullStore,
  type IClientOptions,
  type IConnackPacket,
  type Packet,
} from '../platform/mqtt-client.ts';
import { messageOf } from '../errors.ts';
import { openBrokerSocket } from '../platform/broker-socket.ts';
import { within } from '../platform/time.ts';
import type { BrokerOptions } from './broker.ts';
import { MessageIds } from './message-ids.ts';

/** Down messages that we take before the broker must wait for our PUBACKs. */
const receive_maximum = 16;
const session_expiry_s = 86_400;
/** Brokers that restart or links that flap for less than this do not make the kit look offline. */
const will_delay_s = 20;
/** MQTT 5 section 3.2.2.3.3: what a broker that does not say takes. */
const receive_maximum_default = 65_535;
const packet_bytes_default = 268_435_455;
const end_timeout_ms = 1_000;

export interface Outgoing {
  readonly topic: string;
  readonly payload: string | Uint8Array;
  readonly retain: boolean;
  /** The broker forgets it after this time; MQTT 5 only. */
  readonly expiry_s?: number | undefined;
}

/** PUBACK reason code: 0 taken, 0x10 taken but nobody listens, 0x80 and above refused (MQTT 5 section 3.4.2.1). */
export type PubackCode = number;

export interface SessionOptions {
  readonly broker: BrokerOptions;
  readonly client_id: string;
  readonly protocol: '5' | '3.1.1';
  readonly will: Outgoing;
  /** Handles a down message; its PUBACK is sent when the promise resolves. Rejecting ends the connection. */
  readonly onMessage: (message: {
    topic: string;
    payload: Buffer;
    retained: boolean;
    duplicate: boolean;
  }) => Promise<void>;
}

/** CONNACK refused us, or there was none. `code` is that of MQTT 5, or of 3.1.1 below 6. */
export class ConnectFailed extends Error {
  override readonly name = 'ConnectFailed';
  readonly code: number | undefined;

  constructor(message: string, code: number | undefined) {
    super(message);
    this.code = code;
  }
}

export class Session {
  readonly protocol: '5' | '3.1.1';
  readonly session_present: boolean;
  readonly receive_maximum: number;
  readonly packet_bytes_max: number;
  /** Resolves with the reason when the connection is over. */
  readonly closed: Promise<string>;
  /** Monotonic time of the last packet from the broker. */
  heard_ms = performance.now();

  readonly #client: MqttClient;
  #open = true;
  #ended_by_us = false;
  #misread = false;
  #puback_code: PubackCode = 0;
  #reason: string | undefined;

  constructor(client: MqttClient, protocol: '5' | '3.1.1', connack: IConnackPacket) {
    this.#client = client;
    this.protocol = protocol;
    this.session_present = connack.sessionPresent;
    this.receive_maximum = connack.properties?.receiveMaximum ?? receive_maximum_default;
    this.packet_bytes_max = connack.properties?.maximumPacketSize ?? packet_bytes_default;
    client.on('packetreceive', (packet) => this.#heard(packet));
    client.on(
      'disconnect',
      (packet) =>
        (this.#reason ??= `the broker ended the connection (0x${(packet.reasonCode ?? 0).toString(16)})`),
    );
    client.on('error', (error) => this.#failed(error));
    this.closed = new Promise((resolve) => {
      client.once('close', () => {
        this.#open = false;
        client.end(true);
        resolve(this.#reason ?? 'the broker closed the connection');
      });
    });
  }

  /** We ended it, or gave it up; else the broker or the network did. */
  get ended_by_us(): boolean {
    return this.#ended_by_us;
  }

  /**
   * The broker sent a packet that cannot be read. mosquitto, for one, answers a message over its limit with a PUBACK code
   * that MQTT 5 does not have; since PUBACKs come in order, the oldest message in flight is meant.
   */
  get misread(): boolean {
    return this.#misread;
  }

  /** Publishes with QoS 1. `acked` is called once, unless the connection ends first. */
  publish(message: Outgoing, acked: (code: PubackCode, reason: string) => void): void {
    const { topic, payload, retain, expiry_s } = message;
    const properties =
      expiry_s !== undefined && this.protocol === '5'
        ? { properties: { messageExpiryInterval: expiry_s } }
        : {};
    const body =
      typeof payload === 'string'
        ? payload
        : Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
    this.#client.publish(topic, body, { qos: 1, retain, ...properties }, (error) => {
      if (!this.#open) return;
      if (!error) acked(this.#puback_code, '');
      else if ('code' in error && typeof error.code === 'number') acked(error.code, error.message);
      else this.destroy(messageOf(error));
    });
  }

  async subscribe(filter: string): Promise<void> {
    // A dispatch must never be retained: with `rap` it shows also when it is published while we are connected.
    await this.#client.subscribeAsync(filter, { qos: 1, ...(this.protocol === '5' && { rap: true }) });
  }

  /** Says DISCONNECT and waits for the close, but not for long. */
  async end(): Promise<void> {
    this.#ended_by_us = true;
    this.#reason ??= 'stopped';
    this.#client.end(false);
    if ((await within(end_timeout_ms, this.closed)) === undefined) this.destroy('stopped');
  }

  /** Ends the connection at once, without a word to the broker. */
  destroy(reason: string): void {
    this.#ended_by_us = true;
    this.#reason ??= reason;
    this.#client.end(true);
    this.#client.stream.destroy();
  }

  /** A socket that fails closes by itself. A packet that cannot be read leaves nothing to go on with. */
  #failed(error: Error): void {
    this.#reason ??= messageOf(error);
    if ('code' in error) return;
    this.#misread = true;
    this.#client.end(true);
    this.#client.stream.destroy();
  }

  #heard(packet: Packet): void {
    this.heard_ms = performance.now();
    // MQTT.js gives the callback of a publish no PUBACK, but calls it right after this event.
    if (packet.cmd === 'puback') this.#puback_code = packet.reasonCode ?? 0;
  }
}

/** Connects once. Rejects with `ConnectFailed`. */
export async function openSession(options: SessionOptions, signal: AbortSignal): Promise<Session> {
  const client = new MqttClient(() => openBrokerSocket(options.broker), clientOptions(options));
  acknowledgeHandled(client, options.onMessage);
  return new Promise((resolve, reject) => {
    let reason: string | undefined;
    let code: number | undefined;
    const fail = (): void => {
      signal.removeEventListener('abort', fail);
      client.removeAllListeners('connect');
      client.on('error', () => undefined);
      client.end(true);
      client.stream?.destroy();
      reject(new ConnectFailed(reason ?? 'the broker closed the connection before it answered', code));
    };
    signal.addEventListener('abort', fail, { once: true });
    client.on('error', (error) => {
      reason ??= messageOf(error);
      if ('code' in error && typeof error.code === 'number') code ??= error.code;
    });
    client.once('close', fail);
    client.once('connect', (connack) => {
      signal.removeEventListener('abort', fail);
      client.removeListener('close', fail);
      resolve(new Session(client, options.protocol, connack));
    });
    client.connect();
  });
}

function clientOptions({ broker, client_id, protocol, will }: SessionOptions): IClientOptions {
  const v5 = protocol === '5';
  return {
    manualConnect: true,
    protocolId: 'MQTT',
    protocolVersion: v5 ? 5 : 4,
    clientId: client_id,
    clean: false,
    keepalive: broker.keepalive_s,
    connectTimeout: broker.connect_timeout_ms,
    reconnectPeriod: 0,
    resubscribe: false,
    queueQoSZero: false,
    // The library would make and keep a buffer for each of the 65,536 numbers that a packet may bear: 10 MB.
    writeCache: false,
    username: broker.username,
    ...(broker.password !== undefined && { password: broker.password }),
    messageIdProvider: new MessageIds(),
    outgoingStore: new NullStore(),
    incomingStore: new NullStore(),
    ...(v5 && { properties: { sessionExpiryInterval: session_expiry_s, receiveMaximum: receive_maximum } }),
    will: {
      topic: will.topic,
      payload: Buffer.from(will.payload),
      qos: 1,
      retain: will.retain,
      ...(v5 && { properties: { willDelayInterval: will_delay_s } }),
    },
  };
}

/**
 * Sends the PUBACK only after the message was handled: what the broker may forget is on disk. MQTT.js has another hook
 * for this, `customHandleAcks`, which it does not call in MQTT 3.1.1.
 */
function acknowledgeHandled(client: MqttClient, onMessage: SessionOptions['onMessage']): void {
  client.handleMessage = ({ topic, payload, retain, dup }, done) => {
    const message = { topic, payload: Buffer.from(payload), retained: retain, duplicate: dup };
    void answerWhen(onMessage(message), client, done);
  };
}

async function answerWhen(handled: Promise<void>, client: MqttClient, done: () => void): Promise<void> {
  try {
    await handled;
  } catch (error) {
    client.emit('error', error instanceof Error ? error : new Error(String(error)));
    client.stream.destroy();
    return;
  }
  done();
}
