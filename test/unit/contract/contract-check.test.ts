/** The checker that the end-to-end tests trust takes every message of the contract and refuses what breaks it. */
import { describe, expect, it } from 'vitest';
import { channelSpecs } from '../../../src/contract/asyncapi/document.ts';
import { packBatch } from '../../../src/contract/batch/pack.ts';
import { type BatchItem } from '../../../src/contract/batch/writer.ts';
import { writeEnvelope } from '../../../src/contract/envelope.ts';
import { channels, downTopic, upTopic } from '../../../src/contract/topics.ts';
import { contractChecker } from '../../support/contract-check.ts';
import { asset_id, kit_id, samples, task_id } from '../../support/contract-samples.ts';

const checkAny = contractChecker();
const check = (topic: string, payload: string | Uint8Array) =>
  checkAny(topic, Buffer.from(payload), { kit_id });
const observed = { time_ms: 1_795_255_200_000, epoch: 17, seq: 5 };
const envelope = (data: unknown): string => writeEnvelope(observed, JSON.stringify(data));
const item = (channel: string, data: unknown, seq = 5): BatchItem => ({
  ...observed,
  channel,
  seq,
  data: JSON.stringify(data),
});
const gps = channels.feed(asset_id, 'gps');

describe('a good message', () => {
  const all = channelSpecs.flatMap(({ address, name, messages }) =>
    messages
      .filter(({ body }) => body !== 'deflated')
      .map((message) => ({ message, name: message.name, address, channel: name })),
  );

  it.each(all)('passes: $name', ({ name, message: { feed, body }, address, channel }) => {
    const values: Record<string, string> = { kit_id, asset_id, task_id, feed: feed ?? '' };
    const data = samples[name];
    const payload = body === 'envelope' ? envelope(data) : JSON.stringify(data);
    const topic = address.replaceAll(/\{(\w+)\}/gu, (_, key: string) => values[key]!);
    expect(check(topic, payload)).toEqual({ channel, messages: 1, historical: false });
  });

  it('may be empty where that has a meaning', () => {
    expect(check(upTopic(kit_id, channels.asset(asset_id)), '').channel).toBe('asset');
    expect(check(downTopic(kit_id, { kind: 'sync' }), '').channel).toBe('down_sync');
  });

  it('may stand in a batch with others, each checked as its own', () => {
    const items = [item(gps, samples['droneGps'], 1), item(channels.asset(asset_id), null, 2)];
    const batch = packBatch([...items, item('task/' + task_id, samples['taskReport'], 3)], {
      historical: true,
    });
    expect(check(upTopic(kit_id, channels.batch), batch)).toEqual({
      channel: 'batch',
      messages: 3,
      historical: true,
    });
  });
});

describe('a bad message', () => {
  const batchOf = (...items: BatchItem[]): Uint8Array => packBatch(items, { historical: false });
  const up = (channel: string): string => upTopic(kit_id, channel);

  it.each([
    ['on a topic that the contract does not have', up('weather'), envelope({}), 'no channel'],
    ['of another kit', upTopic(task_id, 'telemetry'), envelope({}), 'belongs to another kit'],
    [
      'of a feed that the contract does not have',
      up(channels.feed(asset_id, 'smell')),
      envelope({}),
      'no feed "smell"',
    ],
    [
      'of an alarm on the topic of feeds',
      up(channels.feed(asset_id, 'motion')),
      envelope({}),
      'no feed "motion"',
    ],
    ['that is no JSON', up('telemetry'), '{', 'no JSON text'],
    ['that is no UTF-8', up('telemetry'), Buffer.from([0x22, 0xff, 0x22]), 'no JSON text'],
    ['without its envelope', up('telemetry'), JSON.stringify({ battery: 5 }), "required property 'epoch'"],
    [
      'with a value out of range',
      up(gps),
      envelope({ ...samples['droneGps'], lat: 91 }),
      '/data/lat must be <= 90',
    ],
    ['that is empty where that means nothing', up(gps), '', 'the payload is empty'],
    [
      'with the id of another asset',
      up(channels.asset(task_id)),
      envelope(samples['announcement']),
      `names ${asset_id}`,
    ],
    [
      'with the id of another task',
      up(channels.task(asset_id)),
      envelope(samples['taskReport']),
      `names ${task_id}`,
    ],
    ['in a batch', up('batch'), batchOf(item(gps, { lat: 1 })), "required property 'lon'"],
    ['in a batch, on an unknown topic', up('batch'), batchOf(item('weather', {})), 'no channel'],
    ['that is a batch in a batch', up('batch'), batchOf(item('batch', {})), 'a batch in a batch'],
    ['that should be a batch and is none', up('batch'), envelope({}), 'incorrect header check'],
  ])('is refused: one %s', (_, topic, payload, fault) => {
    expect(() => check(topic, payload)).toThrow(fault);
  });

  it('names every fault and shows the message', () => {
    const data = { ...samples['droneAttitude'], roll: 999, yaw: 'north' };
    const topic = up(channels.feed(asset_id, 'attitude'));
    expect(() => check(topic, envelope(data))).toThrow(
      /attitude: breaks the contract[^]*\/data\/roll[^]*\/data\/yaw[^]*"north"/u,
    );
  });
});
