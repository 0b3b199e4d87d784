/**
 * One MQTT connection of the service, from CONNECT to its end, over a fresh MQTT.js client that keeps nothing. Each PUBACK
 * waits for its own message to be stored while the next ones are read already.
 */
import { type IClientOptions, MqttClient, type Packet, NullStore } from '../../platform/mqtt-client.ts';
import { InvariantBroken, messageOf } from '../../errors.ts';
import { openBrokerSocket } from '../../platform/broker-socket.ts';
import { within } from '../../platform/time.ts';

/** How to reach the broker. PEM texts; with `ca`, no other authority is trusted. */
export interface BrokerAddress {
  /** `mqtt://host:port` or `mqtts://host:port`, the port always given. */
  readonly url: string;
  readonly username: string;
  readonly password: string | undefined;
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  readonly protocol: 'auto' | '5' | '3.1.1';
  readonly keepalive_s: number;
  readonly connect_timeout_ms: number;
}

export interface Received {
  readonly topic: string;
  readonly payload: Buffer;
  readonly retained: boolean;
}

export interface SessionParts {
  readonly broker: BrokerAddress;
  readonly client_id: string;
  readonly protocol: '5' | '3.1.1';
  /** The broker keeps what comes while nobody is connected for so long; 0: it forgets the session at once. */
  readonly session_expiry_s: number;
  /** Resolves when the message is stored: only then does the broker hear that it may forget it. */
  readonly onMessage: (message: Received) => Promise<void>;
}

export interface Publication {
  readonly topic: string;
  readonly payload: string;
  readonly retain: boolean;
  /** The broker forgets it after this time; MQTT 5 only. */
  readonly expiry_s?: number;
}

/** Messages that the broker sends before it must wait for a PUBACK: what one commit can take. */
const receive_maximum = 500;
const puback_ms = 10_000;
const end_timeout_ms = 1_000;
/** CONNACK "unsupported protocol version", in MQTT 5 and in 3.1.1. */
const unsupported_version: ReadonlySet<number> = new Set([0x84, 1]);
/** PUBACK: the broker took it, and nobody listens (MQTT 5, section 3.4.2.1). */
const nobody_listens = 0x10;

/** The broker does not speak the version of MQTT that was tried. */
export class VersionRefused extends Error {
  override readonly name = 'VersionRefused';
}

/** The connection ended between a publication and its PUBACK: nobody knows whether the broker has it. */
export class OutcomeUnknown extends Error {
  override readonly name = 'OutcomeUnknown';
}

export class MqttSession {
  /** Resolves with the reason when the connection is over. */
  readonly closed: Promise<string>;
  readonly #client: MqttClient;
  #puback_code = 0;
  #reason: string | undefined;

  constructor(client: MqttClient) {
    this.#client = client;
    client.on('packetreceive', (packet: Packet) => {
      // MQTT.js gives the callback of a publish no PUBACK, but calls it right after this event.
      if (packet.cmd === 'puback') this.#puback_code = packet.reasonCode ?? 0;
    });
    client.on('error', (error) => {
      this.#reason ??= messageOf(error);
      // A packet that cannot be read leaves nothing to go on with; a socket that fails closes by itself.
      if (!('code' in error)) client.stream.destroy();
    });
    this.closed = new Promise((resolve) => {
      client.once('close', () => {
        client.end(true);
        resolve(this.#reason ?? 'the broker closed the connection');
      });
    });
  }

  async subscribe(filter: string): Promise<void> {
    await this.#client.subscribeAsync(filter, { qos: 1 });
  }

  async unsubscribe(filter: string): Promise<void> {
    await this.#client.unsubscribeAsync(filter);
  }

  /**
   * Publishes with QoS 1; answers whether anybody listens, as far as the broker tells. Rejects when the broker refuses it,
   * and with `OutcomeUnknown` when no PUBACK comes.
   */
  async publish({ topic, payload, retain, expiry_s }: Publication): Promise<{ readonly isHeard: boolean }> {
    const isV5 = this.#client.options.protocolVersion === 5;
    const properties =
      isV5 && expiry_s !== undefined ? { properties: { messageExpiryInterval: expiry_s } } : {};
    const acked = new Promise<number>((resolve, reject) => {
      this.#client.publish(topic, payload, { qos: 1, retain, ...properties }, (error) => {
        if (error) reject(error);
        else resolve(this.#puback_code);
      });
    });
    const code = await within(puback_ms, Promise.race([acked, this.closed.then(() => undefined)]));
    if (code === undefined) throw new OutcomeUnknown('the broker has not confirmed it');
    return { isHeard: code !== nobody_listens };
  }

  /** Says DISCONNECT and waits for the close, but not for long. */
  async end(): Promise<void> {
    this.#reason ??= 'stopped';
    this.#client.end(false);
    if ((await within(end_timeout_ms, this.closed)) !== undefined) return;
    this.#client.end(true);
    this.#client.stream.destroy();
  }
}

/** Connects once. Rejects with the reason; with `VersionRefused` when another version may do. */
export async function openMqttSession(parts: SessionParts, signal: AbortSignal): Promise<MqttSession> {
  const client = new MqttClient(() => openBrokerSocket(parts.broker), clientOptions(parts));
  acknowledgeStored(client, parts.onMessage);
  return new Promise((resolve, reject) => {
    let reason: Error | undefined;
    const fail = (): void => {
      signal.removeEventListener('abort', fail);
      client.removeAllListeners('connect');
      client.on('error', () => undefined);
      client.end(true);
      client.stream?.destroy();
      reject(reason ?? new Error('the broker closed the connection before it answered'));
    };
    const note = (error: Error): void => {
      const code = 'code' in error ? error.code : undefined;
      const isOld = typeof code === 'number' && unsupported_version.has(code);
      reason ??= isOld ? new VersionRefused(messageOf(error)) : error;
    };
    signal.addEventListener('abort', fail, { once: true });
    client.on('error', note);
    client.once('close', fail);
    client.once('connect', () => {
      signal.removeEventListener('abort', fail);
      client.removeListener('close', fail);
      client.removeListener('error', note);
      resolve(new MqttSession(client));
    });
    client.connect();
  });
}

function clientOptions({ broker, client_id, protocol, session_expiry_s }: SessionParts): IClientOptions {
  const isV5 = protocol === '5';
  return {
    manualConnect: true,
    protocolId: 'MQTT',
    protocolVersion: isV5 ? 5 : 4,
    clientId: client_id,
    clean: session_expiry_s === 0,
    keepalive: broker.keepalive_s,
    connectTimeout: broker.connect_timeout_ms,
    reconnectPeriod: 0,
    resubscribe: false,
    queueQoSZero: false,
    // The library would make and keep a buffer for each of the 65,536 numbers that a packet may bear: 10 MB.
    writeCache: false,
    username: broker.username,
    ...(broker.password !== undefined && { password: broker.password }),
    outgoingStore: new NullStore(),
    incomingStore: new NullStore(),
    ...(isV5 && { properties: { sessionExpiryInterval: session_expiry_s, receiveMaximum: receive_maximum } }),
  };
}

/** Tells MQTT.js to go on reading and to send no PUBACK of its own: it does so for a message that could not be handled. */
const acknowledged_later = new Error('acknowledged when it is stored');

/**
 * MQTT.js hands over one message at a time and acknowledges it before it reads the next one, so that each commit would hold
 * a single message. Here it reads on, and the PUBACK is written when the message is stored.
 */
function acknowledgeStored(client: MqttClient, onMessage: SessionParts['onMessage']): void {
  client.handleMessage = (packet, done) => {
    const { topic, retain, messageId, qos } = packet;
    const stored = onMessage({ topic, payload: Buffer.from(packet.payload), retained: retain });
    void acknowledgeWhen(stored, client, qos === 1 ? messageId : undefined);
    done(acknowledged_later);
  };
}

async function acknowledgeWhen(stored: Promise<void>, client: MqttClient, messageId: number | undefined) {
  try {
    await stored;
  } catch {
    client.stream.destroy();
    return;
  }
  if (messageId === undefined || !client.connected) return;
  // Not among its types, and the one way to write a packet.
  const write: unknown = Reflect.get(client, '_sendPacket');
  if (typeof write !== 'function') throw new InvariantBroken('MQTT.js writes packets by another name');
  Reflect.apply(write, client, [{ cmd: 'puback', messageId, reasonCode: 0 }]);
}
