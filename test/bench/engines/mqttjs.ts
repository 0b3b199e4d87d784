/** MQTT.js as most programs use it: QoS 1, a bounded number of messages outstanding, the rest waiting in memory. */
import { connectAsync, type MqttClient } from 'mqtt';
import { readFileSync } from 'node:fs';
import { writeEnvelope } from '../../../src/contract/envelope.ts';
import { channels, upTopic } from '../../../src/contract/topics.ts';
import { test_drones, test_kit } from '../../support/gps.ts';
import { window_messages, type Engine, type EngineChoice } from './engine.ts';

export interface Target {
  readonly url: string;
  /** Path of the authority's certificate, for TLS. */
  readonly ca?: string;
}

type Waiting = { readonly topic: string; readonly payload: string };

export async function openMqttjs(
  choice: Extract<EngineChoice, { kind: 'mqttjs' }>,
  target: Target,
): Promise<Engine> {
  const client = await connectAsync(target.url, {
    protocolVersion: choice.protocol,
    keepalive: choice.keepalive_s,
    clientId: `plain-${process.pid}`,
    reconnectPeriod: 0,
    ...(target.ca === undefined ? {} : { ca: readFileSync(target.ca) }),
  });
  client.on('error', () => undefined);
  const lost = new Promise<void>((resolve) => {
    client.once('close', resolve);
  });
  const queue = new Window(client);
  let seq = 0;
  return {
    send(durability, source, data) {
      const drone = test_drones[source % test_drones.length] ?? test_drones[0];
      const channel = durability === 'sync' ? channels.event(drone, 'gps') : channels.feed(drone, 'gps');
      const envelope = { epoch: 1, seq: (seq += 1), time_ms: Date.now() };
      queue.push({
        topic: upTopic(test_kit, channel),
        payload: writeEnvelope(envelope, JSON.stringify(data)),
      });
    },
    get acknowledged() {
      return queue.acknowledged;
    },
    lost,
    close: async () => client.endAsync(true),
  };
}

/** Keeps at most `window_messages` outstanding. */
class Window {
  readonly #client: MqttClient;
  #waiting: Waiting[] = [];
  #head = 0;
  #outstanding = 0;
  acknowledged = 0;

  constructor(client: MqttClient) {
    this.#client = client;
  }

  push(message: Waiting): void {
    this.#waiting.push(message);
    this.#pump();
  }

  #pump(): void {
    while (this.#outstanding < window_messages) {
      const message = this.#waiting[this.#head];
      if (!message) break;
      this.#head += 1;
      this.#outstanding += 1;
      this.#client.publish(message.topic, message.payload, { qos: 1 }, (error) => {
        this.#outstanding -= 1;
        if (error) return;
        this.acknowledged += 1;
        this.#pump();
      });
    }
    if (this.#head > compact_after) {
      this.#waiting = this.#waiting.slice(this.#head);
      this.#head = 0;
    }
  }
}
const compact_after = 4_096;
