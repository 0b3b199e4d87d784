/**
 * Brokers of clouds as their documents describe them (systemd/broker/clouds.md): each ends, refuses, ignores or delays what goes beyond
 * its limits, and what a client did wrong is noted.
 */
import { unpackBatch } from '../../src/contract/batch/batch.ts';
import { envelopeOf } from '../../src/contract/envelope.ts';
import { z } from 'zod';
import {
  property,
  type Peer,
  type Published,
  type Script,
  uint16,
} from '../support/brokers/scripted-broker.ts';

const kib = 1_024;
/** MQTT 5 section 2.2.2.2. */
const receive_maximum_id = 0x21;

interface CloudRules {
  readonly publishes_per_s?: number;
  /** What happens to a PUBLISH above the limit of its second. */
  readonly beyond?: 'no_answer' | 'quota_exceeded' | 'read_later';
  readonly payload_bytes_max: number;
  readonly retained: 'kept' | 'ends_connection';
  readonly retained_bytes_max: number;
  readonly slashes_max: number;
  readonly topic_bytes_max: number;
  readonly filters_max: number;
  readonly receive_maximum: number;
}

const anything = { slashes_max: Infinity, topic_bytes_max: 65_535, filters_max: Infinity } as const;

export const clouds = {
  aws: {
    publishes_per_s: 100,
    beyond: 'no_answer',
    payload_bytes_max: 128 * kib,
    retained: 'kept',
    retained_bytes_max: 128 * kib,
    slashes_max: 7,
    topic_bytes_max: 256,
    filters_max: 8,
    receive_maximum: 100,
  },
  azure: {
    publishes_per_s: 1_000,
    beyond: 'quota_exceeded',
    payload_bytes_max: 512 * kib,
    retained: 'kept',
    retained_bytes_max: 64 * kib,
    slashes_max: 7,
    topic_bytes_max: 256,
    filters_max: 10,
    receive_maximum: 100,
  },
  azure_before_2025: {
    publishes_per_s: 1_000,
    beyond: 'quota_exceeded',
    payload_bytes_max: 512 * kib,
    retained: 'ends_connection',
    retained_bytes_max: 0,
    slashes_max: 7,
    topic_bytes_max: 256,
    filters_max: 10,
    receive_maximum: 100,
  },
  hivemq: {
    ...anything,
    payload_bytes_max: 5_120 * kib,
    retained: 'kept',
    retained_bytes_max: 5_120 * kib,
    receive_maximum: 10,
  },
  emqx: {
    ...anything,
    publishes_per_s: 10,
    beyond: 'read_later',
    payload_bytes_max: 1_024 * kib,
    retained: 'kept',
    retained_bytes_max: 1_024 * kib,
    filters_max: 10,
    receive_maximum: 32,
  },
} as const satisfies Readonly<Record<string, CloudRules>>;

export interface FakeCloud {
  readonly script: Script;
  /** Rules that were broken, by name. */
  readonly broken: readonly string[];
  /** Numbers of the messages that it has, also those of batches, with the time from when they were made, ms. */
  readonly delays_ms: ReadonlyMap<string, number>;
}

export function fakeCloud(name: keyof typeof clouds): FakeCloud {
  const rules: CloudRules = clouds[name];
  const broken: string[] = [];
  const delays_ms = new Map<string, number>();
  const retained = new Map<string, Buffer>();
  let second = { number: 0, messages: 0 };
  const end = (peer: Peer, code: number, rule: string): void => {
    broken.push(rule);
    peer.disconnect(code);
  };
  /** Whether this message is within the limit of its second. */
  const isWithinRate = (): boolean => {
    const number = Math.floor(performance.now() / 1_000);
    if (number !== second.number) second = { number, messages: 0 };
    second.messages += 1;
    return second.messages <= (rules.publishes_per_s ?? Infinity);
  };
  const keep = (message: Published): void => {
    if (message.retain) retained.set(message.topic, message.body);
    const arrived_ms = Date.now();
    for (const { epoch, seq, time_ms } of itemsOf(message)) {
      const id = `${epoch}/${seq}`;
      if (!delays_ms.has(id)) delays_ms.set(id, arrived_ms - time_ms);
    }
  };
  return {
    broken,
    delays_ms,
    script: {
      onConnect: (peer) => peer.connack(0, property(receive_maximum_id, uint16(rules.receive_maximum))),
      onSubscribe(packet_id, filters, peer) {
        if (filters.length > rules.filters_max) return end(peer, 0x97, 'filters');
        peer.suback(
          packet_id,
          filters.map(() => 1),
        );
        // None of these clouds is asked with a wildcard, and AWS would give nothing for one.
        for (const filter of filters) {
          const body = retained.get(filter);
          if (body !== undefined) peer.publish(filter, body);
        }
        return undefined;
      },
      onPublish(message, peer) {
        const { topic, body, retain, packet_id } = message;
        if (topic.split('/').length - 1 > rules.slashes_max) return end(peer, 0x90, 'slashes');
        if (Buffer.byteLength(topic) > rules.topic_bytes_max) return end(peer, 0x90, 'topic_bytes');
        if (body.length > rules.payload_bytes_max) return end(peer, 0x95, 'payload_bytes');
        if (retain && rules.retained === 'ends_connection') return end(peer, 0x9a, 'retained');
        if (retain && body.length > rules.retained_bytes_max) broken.push('retained_bytes');
        if (!isWithinRate()) {
          broken.push('rate');
          if (rules.beyond === 'no_answer') return undefined;
          if (rules.beyond === 'quota_exceeded') return peer.puback(packet_id, 0x97);
          peer.pause(1_000 - (performance.now() % 1_000));
        }
        keep(message);
        return peer.puback(packet_id);
      },
    },
  };
}

const envelope = envelopeOf(z.unknown());

function itemsOf({ topic, body }: Published) {
  if (topic.endsWith('/up/batch')) return unpackBatch(body);
  if (body.length === 0 || topic.endsWith('/up/state')) return [];
  const { time, epoch, seq } = envelope.parse(JSON.parse(body.toString()));
  return [{ time_ms: Date.parse(time), epoch, seq }];
}
