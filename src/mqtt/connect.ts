/** Connects an MQTT.js client once, over a stream that bounds what arrives. */
import type { BrokerOptions, ProtocolVersion } from './broker.ts';
import {
  type IClientOptions,
  type IConnackPacket,
  type IDisconnectPacket,
  type MqttClient,
  newClient,
} from './client.ts';
import { FailureNotes } from './connect-failed.ts';
import type { Oversize } from './wire/frames.ts';
import { acknowledge, Handling, type HandlingOptions } from './handling.ts';
import { keepAlive } from './keep-alive.ts';
import { PacketIds } from './wire/packet-ids.ts';
import { openBrokerSocket, type OpenBrokerSocket } from './socket.ts';
import { MqttStream } from './stream.ts';

/** Published by the broker when the connection ends without a DISCONNECT. */
export interface Will {
  readonly topic: string;
  readonly payload: string | Uint8Array;
  readonly retain: boolean;
  /** The broker waits for so long whether the client comes back; MQTT 5 only. */
  readonly delay_s: number;
}

export interface ConnectOptions extends HandlingOptions {
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
  readonly will?: Will | undefined;
  /** Left out: a socket of the operating system. */
  readonly openSocket?: OpenBrokerSocket | undefined;
}

export interface Connection {
  readonly protocol: ProtocolVersion;
  readonly client: MqttClient;
  readonly stream: MqttStream;
  readonly connack: IConnackPacket;
  /** Came right behind the CONNACK: the connection is over already. */
  readonly disconnect: IDisconnectPacket | undefined;
}

/**
 * Resolves after CONNACK 0 with what `hold` makes of the connection. `hold` is called at once and has to listen for its errors and
 * its end: what came in one segment with the CONNACK is handled before the promise can be. Rejects with `ConnectFailed`.
 */
export async function connectOnce<T>(
  options: ConnectOptions,
  signal: AbortSignal,
  hold: (connection: Connection) => T,
): Promise<T> {
  const attempt = {
    stream: undefined as MqttStream | undefined,
    disconnect: undefined as IDisconnectPacket | undefined,
  };
  const handling = new Handling(options);
  const client = newClient(
    () => (attempt.stream = openStream(options)),
    clientOptions(options),
    ({ topic, payload, retain, dup, qos, messageId }, resume) => {
      const message = { topic, payload: Buffer.from(payload), retained: retain, duplicate: dup };
      const packet_id = qos === 1 ? messageId : undefined;
      if (attempt.stream) handling.take(message, packet_id, attempt.stream, resume);
    },
  );
  return new Promise((resolve, reject) => {
    const failure = new FailureNotes();
    const fail = (): void => {
      signal.removeEventListener('abort', fail);
      client.removeAllListeners('connect');
      client.on('error', () => undefined);
      client.end(true);
      attempt.stream?.destroy();
      if (attempt.stream?.failure) failure.note(attempt.stream.failure);
      reject(failure.conclude(attempt.stream?.connected ?? false));
    };
    const note = (error: Error): void => {
      failure.note(error);
      // After a packet that MQTT.js cannot read, the connection is unusable.
      attempt.stream?.destroy();
    };
    signal.addEventListener('abort', fail, { once: true });
    client.on('packetreceive', (packet) => {
      if (packet.cmd === 'connack') failure.answered(packet);
    });
    client.on('error', note);
    // MQTT.js reports a DISCONNECT that comes at once before it reports the connection.
    client.once('disconnect', (packet) => (attempt.disconnect = packet));
    client.once('close', fail);
    client.once('connect', (connack) => {
      const { stream, disconnect } = attempt;
      if (!stream || stream.destroyed) return;
      signal.removeEventListener('abort', fail);
      client.removeListener('close', fail);
      client.removeListener('error', note);
      keepAlive(stream, (client.keepalive ?? 0) * 1000);
      resolve(hold({ protocol: options.protocol, client, stream, connack, disconnect }));
    });
    if (signal.aborted) fail();
    else client.connect();
  });
}

function openStream(options: ConnectOptions): MqttStream {
  const { broker, protocol, packet_bytes_max, onOversize, openSocket = openBrokerSocket } = options;
  const stream: MqttStream = new MqttStream(openSocket(broker), {
    protocol,
    packet_bytes_max,
    onOversize,
    onSkipped: ({ packet_id }) => {
      if (packet_id !== undefined) acknowledge(packet_id, stream);
    },
  });
  return stream;
}

function clientOptions(options: ConnectOptions): IClientOptions {
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
    connectTimeout: broker.connect_timeout_ms,
    messageIdProvider: new PacketIds(),
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
