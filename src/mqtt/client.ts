/**
 * MQTT.js as the encoder and decoder of one connection. It keeps no messages, reads on while messages are handled, sends no
 * PUBACK and does not measure the keep-alive. Only this file imports the library, and what is built on its behavior rather
 * than on its documentation is here, in wire/packet-lengths.ts and in no-debug.ts.
 */
import './no-debug.ts';
import './wire/packet-lengths.ts';
import type { Duplex } from 'node:stream';
import { type IClientOptions, type IPublishPacket, MqttClient, type Packet, Store } from 'mqtt';
import { texts } from './texts.ts';

export type { IClientOptions, IConnackPacket, IDisconnectPacket, MqttClient, Packet } from 'mqtt';

export type PubackPacket = Extract<Packet, { cmd: 'puback' }>;

/** Keeps nothing, so that MQTT.js finds nothing to replay. */
class NullStore extends Store {
  override put(...[, done]: Parameters<Store['put']>): this {
    done();
    return this;
  }

  override del(...[, done]: Parameters<Store['del']>): this {
    done();
    return this;
  }

  /** The library handles what it has decoded after the end, too, and fails at a store that is closed. */
  override close(...[done]: Parameters<Store['close']>): void {
    done();
  }
}

/** MQTT.js sends no PUBACK for a message whose handler fails, and continues reading. */
const acknowledged_elsewhere = new Error('acknowledged when it is handled');
/** Its keep-alive counts packets only, and would end a connection over which a large message comes slowly. */
const no_timer = { set: () => 0, clear: () => undefined } as const;

/** A client that is not connected yet. `take` gets each message; MQTT.js decodes the next one after `resume`. */
export function newClient(
  openStream: () => Duplex,
  options: IClientOptions,
  take: (packet: IPublishPacket, resume: () => void) => void,
): MqttClient {
  const client = new MqttClient(openStream, {
    ...options,
    manualConnect: true,
    protocolId: 'MQTT',
    timerVariant: no_timer,
    reconnectPeriod: 0,
    resubscribe: false,
    queueQoSZero: false,
    // The library would make and keep a buffer for each of the 65,536 packet identifiers: 10 MB.
    writeCache: false,
    // See no-debug.ts.
    log: () => undefined,
    outgoingStore: new NullStore(),
    incomingStore: new NullStore(),
  });
  client.handleMessage = (packet, done) => take(packet, () => done(acknowledged_elsewhere));
  return client;
}

/** Whether an error means that no CONNACK came in time. */
export function isConnackTimeout(error: Error): boolean {
  return error.message === 'connack timeout';
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
