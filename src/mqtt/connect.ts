/**
 * Connects an MQTT.js client once, over a stream that bounds what arrives. MQTT.js connects, subscribes and disconnects; messages and
 * their acknowledgements are ours in both directions (stream.ts, publisher.ts): each is acknowledged once it is handled, in any
 * order. Only this file calls the library.
 */
import { type IClientOptions, type IConnackPacket, type IDisconnectPacket, MqttClient, Store } from 'mqtt';
import type { IPublishPacket } from 'mqtt-packet';
import { every } from '../platform/time.ts';
import type { BrokerOptions, ProtocolVersion } from './broker.ts';
import { FailureNotes } from './connect-failed.ts';
import type { Oversize } from './frames.ts';
import { PacketIds } from './publisher.ts';
import { openTransport, type OpenTransport, type Transport } from './socket.ts';
import { MqttStream } from './stream.ts';
import { texts } from './texts.ts';

export interface Received {
  readonly topic: string;
  readonly payload: Buffer;
  readonly retained: boolean;
  readonly duplicate: boolean;
}

/** Published by the broker when the connection ends without a DISCONNECT. */
export interface Will {
  readonly topic: string;
  readonly payload: string | Uint8Array;
  readonly retain: boolean;
  /** The broker waits for so long whether the client comes back; MQTT 5 only. */
  readonly delay_s: number;
}

export interface ConnectOptions {
  readonly broker: BrokerOptions;
  readonly client_id: string;
  readonly protocol: ProtocolVersion;
  /**
   * The broker keeps subscriptions and messages for so long after the connection; 0: nothing, and it forgets what it kept.
   * MQTT 3.1.1 supports only 0 and unlimited.
   */
  readonly session_expiry_s: number;
  /** Messages that the broker may send before it has to wait for a PUBACK; MQTT 5 only. */
  readonly receive_maximum: number;
  /** The largest packet that may arrive; announced to brokers of MQTT 5, and skipped where one comes all the same. */
  readonly packet_bytes_max: number;
  /** A message above `packet_bytes_max`. It is acknowledged once it was skipped. */
  readonly onOversize: (message: Oversize) => void;
  /**
   * Resolves when the broker may forget the message: its PUBACK leaves then, while the next ones are read already. False:
   * no PUBACK is sent, so that the message comes again in a later connection. Rejecting ends the connection.
   */
  readonly onMessage: (message: Received) => Promise<boolean>;
  /**
   * Messages that are handled at the same time, at most; nothing more is read meanwhile. MQTT 3.1.1 has no Receive Maximum,
   * and mosquitto 2.0.11 sends all that a resumed session has queued whatever the Receive Maximum is. Left out: no limit.
   */
  readonly unhandled_max?: number | undefined;
  readonly will?: Will | undefined;
  /** Left out: sockets of the operating system. */
  readonly openTransport?: OpenTransport | undefined;
}

export interface Connection {
  readonly protocol: ProtocolVersion;
  readonly client: MqttClient;
  readonly stream: MqttStream;
  /** Of the subscriptions and the messages together. */
  readonly packet_ids: PacketIds;
  readonly connack: IConnackPacket;
  /** Came right behind the CONNACK: the connection is over already. */
  readonly disconnect: IDisconnectPacket | undefined;
}

const pingreq = Buffer.from([0xc0, 0]);
const puback_byte = 0x40;
/** MQTT.js keeps no keep-alive: it counts packets only, and would end a connection over which a large message comes slowly. */
const no_timer = { set: () => 0, clear: () => undefined } as const;
/** The keep-alive is checked so many times in its period. */
const checks_per_period = 10;
/** A ping that nothing at all follows for this part of the period means that the connection is dead. */
const ping_unanswered_share = 0.5;

/**
 * Resolves after CONNACK 0 with what `hold` makes of the connection. `hold` is called at once and has to listen for its errors and
 * its end: what came in one segment with the CONNACK is handled before the promise can be. Rejects with `ConnectFailed`.
 */
export async function connectOnce<T>(
  options: ConnectOptions,
  signal: AbortSignal,
  hold: (connection: Connection) => T,
): Promise<T> {
  const { broker, openTransport: open = openTransport } = options;
  const failure = new FailureNotes();
  const time = new AbortController();
  const timer = setTimeout(() => {
    failure.timeIsUp();
    time.abort();
  }, broker.connect_timeout_ms);
  const stop = AbortSignal.any([signal, time.signal]);
  try {
    const transport = await open(broker, stop).catch((error: unknown) => {
      if (!stop.aborted) failure.note(error instanceof Error ? error : new Error(String(error)));
      throw failure.conclude(false);
    });
    return await greet(options, transport, { failure, stop, hold });
  } finally {
    clearTimeout(timer);
  }
}

/** Sends CONNECT and waits for the answer. */
async function greet<T>(
  options: ConnectOptions,
  transport: Transport,
  attempt: {
    readonly failure: FailureNotes;
    readonly stop: AbortSignal;
    readonly hold: (connection: Connection) => T;
  },
): Promise<T> {
  const { broker, protocol } = options;
  const { failure, stop, hold } = attempt;
  const stream = openStream(options, transport);
  const packet_ids = new PacketIds();
  const client = new MqttClient(() => stream, clientOptions(options, packet_ids));
  let disconnect: IDisconnectPacket | undefined;
  return new Promise((resolve, reject) => {
    const fail = (): void => {
      stop.removeEventListener('abort', fail);
      transport.failed?.();
      client.on('error', () => undefined);
      client.end(true);
      stream.destroy();
      if (stream.failure) failure.note(stream.failure);
      reject(failure.conclude(true));
    };
    const note = (error: Error): void => {
      failure.note(error);
      // After a packet that MQTT.js cannot read, the connection is unusable.
      stream.destroy();
    };
    stop.addEventListener('abort', fail, { once: true });
    client.on('packetreceive', (packet) => {
      if (packet.cmd === 'connack') failure.answered(packet);
    });
    client.on('error', note);
    // MQTT.js reports a DISCONNECT that comes at once before it reports the connection.
    client.once('disconnect', (packet) => (disconnect = packet));
    client.once('close', fail);
    client.once('connect', (connack) => {
      if (stream.destroyed) return;
      stop.removeEventListener('abort', fail);
      client.removeListener('close', fail);
      client.removeListener('error', note);
      keepAlive(stream, keepAliveOf(connack, broker) * 1000);
      resolve(hold({ protocol, client, stream, packet_ids, connack, disconnect }));
    });
    if (stop.aborted) fail();
    else client.connect();
  });
}

/**
 * Never longer than configured: with the 0 or the hours that some brokers announce (`max_keepalive` of mosquitto), a connection that a
 * NAT in between has forgotten would stay open, deaf.
 */
function keepAliveOf({ properties }: IConnackPacket, { keepalive_s }: BrokerOptions): number {
  return Math.min(properties?.serverKeepAlive || keepalive_s, keepalive_s);
}

function openStream(options: ConnectOptions, transport: Transport): MqttStream {
  const { protocol, packet_bytes_max, onOversize } = options;
  const handle = handling(options, () => stream);
  const stream: MqttStream = new MqttStream(transport, {
    protocol,
    packet_bytes_max,
    onMessage: handle,
    onOversize,
    onSkipped: ({ packet_id }) => {
      if (packet_id !== undefined) acknowledge(packet_id, stream);
    },
  });
  return stream;
}

function clientOptions(options: ConnectOptions, packet_ids: PacketIds): IClientOptions {
  const { broker, client_id, protocol, session_expiry_s, receive_maximum, packet_bytes_max, will } = options;
  const { username, password } = broker;
  const isV5 = protocol === '5';
  return {
    clientId: client_id,
    clean: session_expiry_s === 0,
    ...(username && { username }),
    ...(password !== undefined && { password }),
    protocolVersion: isV5 ? 5 : 4,
    keepalive: broker.keepalive_s,
    // Later than the one of `connectOnce`, which knows whether there was a connection.
    connectTimeout: 2 * broker.connect_timeout_ms,
    manualConnect: true,
    reconnectPeriod: 0,
    resubscribe: false,
    timerVariant: no_timer,
    // The library would make and keep a buffer for each of the 65,536 packet identifiers: 10 MB.
    writeCache: false,
    messageIdProvider: packet_ids,
    // The library handles what it has decoded after the end, too, and fails at a store that is emptied then.
    incomingStore: new Store({ clean: false }),
    ...(will && {
      will: {
        topic: will.topic,
        payload: Buffer.from(will.payload),
        qos: 1,
        retain: will.retain,
        ...(isV5 && { properties: { willDelayInterval: will.delay_s } }),
      },
    }),
    ...(isV5 && {
      properties: {
        sessionExpiryInterval: session_expiry_s,
        receiveMaximum: receive_maximum,
        maximumPacketSize: packet_bytes_max,
      },
    }),
  };
}

/** Passes messages to their handler and acknowledges each when it is handled, in any order. */
function handling(
  { onMessage, unhandled_max = Infinity }: ConnectOptions,
  streamOf: () => MqttStream,
): (packet: IPublishPacket) => void {
  let under_way = 0;
  const handle = async ({ topic, payload, retain, dup, qos, messageId }: IPublishPacket): Promise<void> => {
    const stream = streamOf();
    under_way += 1;
    if (under_way >= unhandled_max) stream.hold();
    try {
      const message = { topic, payload: Buffer.from(payload), retained: retain, duplicate: dup };
      const isDone = await onMessage(message);
      if (isDone && qos === 1 && messageId !== undefined) acknowledge(messageId, stream);
    } catch (error) {
      stream.fail(error instanceof Error ? error : new Error(String(error)));
    }
    under_way -= 1;
    stream.readOn();
  };
  return (packet) => void handle(packet);
}

/** Sends a PUBACK with reason code 0, the same in either version. */
function acknowledge(packet_id: number, stream: MqttStream): void {
  if (stream.writable) stream.write(Buffer.from([puback_byte, 2, packet_id >> 8, packet_id & 0xff]));
}

/**
 * Measures the keep-alive by bytes instead of by packets: a large message that comes slowly is a sign of life. Pings when nothing was sent or received for a period; ends the connection when a ping is followed by silence.
 */
function keepAlive(stream: MqttStream, period_ms: number): void {
  const closed = new AbortController();
  stream.once('close', () => closed.abort());
  const check_ms = period_ms / checks_per_period;
  let pinged_ms: number | undefined;
  let isOverdue = false;
  every(check_ms, closed.signal, () => {
    const now_ms = performance.now();
    if (pinged_ms !== undefined && stream.last_received_ms >= pinged_ms) pinged_ms = undefined;
    if (pinged_ms !== undefined && now_ms - pinged_ms > period_ms * ping_unanswered_share) {
      // After a stall of this process the timer comes before the answer that waits in the socket: the next check has seen it.
      if (!isOverdue) {
        isOverdue = true;
        return;
      }
      const silent_s = ((now_ms - pinged_ms) / 1000).toFixed(1);
      stream.fail(new Error(texts.ping_unanswered(silent_s)));
      return;
    }
    isOverdue = false;
    const idle_ms = now_ms - Math.min(stream.sent_ms, stream.last_received_ms);
    if (idle_ms < period_ms - check_ms || pinged_ms !== undefined) return;
    pinged_ms = now_ms;
    stream.write(pingreq);
  });
}

/** Subscribes with QoS 1; resolves with the reason code for each filter. */
export async function subscribeAll(
  client: MqttClient,
  filters: readonly string[],
  properties: { readonly rap?: boolean },
): Promise<readonly number[]> {
  return new Promise((resolve, reject) => {
    client.subscribe([...filters], { qos: 1, ...properties }, (error, _granted, packet) => {
      if (packet?.granted.length === filters.length) resolve(packet.granted.map(Number));
      else reject(error ?? new Error(texts.partly_answered));
    });
  });
}
