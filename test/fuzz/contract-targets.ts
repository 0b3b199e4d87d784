/** What comes over MQTT, HTTP and from the journal: envelopes, batches, dispatches, requests. */
import { deflateSync } from 'node:zlib';
import { z } from 'zod';
import { packBatch } from '../../src/contract/batch/pack.ts';
import { batchItems, readBatch } from '../../src/contract/batch/batch.ts';
import { countValues, message_limits, readJson, request_limits } from '../../src/contract/bounded-json.ts';
import { cloudAck, kitConfig } from '../../src/contract/tasks.ts';
import { channels, parseDown, parseUp, readChannel, upTopic } from '../../src/contract/topics.ts';
import { readMessage } from '../../src/cloud/read-message.ts';
import { readDispatch, readJournaled } from '../../src/kit/tasks/dispatch.ts';
import { kit_id, samples } from '../support/contract-samples.ts';
import { json_punctuation, type Target } from './engine.ts';

const never = (): boolean => false;
const json_tokens = [...json_punctuation, '\\u0000', '\\ud800', 'null', 'true', '1e400', '"__proto__":'];
const contract_tokens = [
  ...json_tokens,
  '"epoch":',
  '"seq":',
  '"data":',
  '"time":',
  '"ranges":',
  '"groups":',
  '"ch":',
];
const bytes_max = 64 * 1024;

const batch_text = JSON.stringify({
  v: 1,
  historical: true,
  groups: [
    {
      e: 17,
      ch: 'telemetry',
      seq: [40, 2],
      t: [1_795_255_200_000, 500],
      k: ['battery'],
      c: [{ s: 0, d: [80, -1] }],
    },
  ],
});

/** One of each kind that has an envelope. */
const up_channels = [
  channels.state,
  channels.telemetry,
  channels.roster,
  channels.drops,
  channels.asset(kit_id),
  channels.commands(kit_id),
  channels.feed(kit_id, 'gps'),
  channels.event(kit_id, 'motion'),
  channels.task(kit_id),
  channels.partner(kit_id),
];

const dispatch_text = JSON.stringify({
  task_id: kit_id,
  asset_id: kit_id,
  command_name: 'goto_waypoint',
  payload: { lat: 47.1, lon: 8.2, alt_m: 400 },
  created_at: '2026-11-21T10:00:00.000Z',
});

export const contractTargets: readonly Target[] = [
  {
    name: 'envelope',
    read: (input) => {
      // One channel for each input: they share the envelope.
      const channel = up_channels[input.length % up_channels.length] ?? channels.telemetry;
      return readMessage(upTopic(kit_id, channel), input);
    },
    allows: never,
    seeds: Object.values(samples).map((data) =>
      JSON.stringify({ time: '2026-11-21T10:00:00.000Z', epoch: 1, seq: 1, data }),
    ),
    dictionary: contract_tokens,
    bytes_max,
  },
  {
    name: 'batch-text',
    read: (input) => batchItems(readBatch(input)),
    allows: (error) =>
      error instanceof SyntaxError || error instanceof RangeError || error instanceof z.ZodError,
    seeds: [batch_text],
    dictionary: contract_tokens,
    bytes_max,
  },
  {
    name: 'batch-bytes',
    read: (input) => readMessage(upTopic(kit_id, 'batch'), input),
    allows: never,
    seeds: [
      Buffer.from(
        packBatch(
          [{ channel: 'telemetry', epoch: 1, seq: 1, time_ms: 1_795_255_200_000, data: '{"battery":80}' }],
          {
            historical: true,
          },
        ),
      ),
      deflateSync(batch_text),
    ],
    dictionary: ['\u0078\u009c', '\u0078\u0001'],
    bytes_max,
  },
  {
    name: 'topics',
    read: (input) => {
      const text = input.toString();
      parseDown(kit_id, text);
      const up = parseUp(text);
      return up && readChannel(up.channel);
    },
    allows: never,
    seeds: [`k1/${kit_id}/up/feed/${kit_id}/gps`, `k1/${kit_id}/down/task/${kit_id}/cancel`],
    dictionary: ['/', '+', '#', 'k1', 'up', 'down', 'task', 'asset', 'commands', 'event', '\u0000'],
    bytes_max: 4_096,
  },
  {
    name: 'dispatch',
    read: (input) => {
      readDispatch(input, kit_id);
      return readJournaled(input.toString());
    },
    allows: never,
    seeds: [dispatch_text],
    dictionary: contract_tokens,
    bytes_max,
  },
  {
    name: 'cloud-ack-and-config',
    read: (input) => {
      const value = readJson(input, message_limits);
      cloudAck.safeParse(value);
      return kitConfig.safeParse(value);
    },
    allows: (error) =>
      error instanceof SyntaxError || error instanceof RangeError || error instanceof TypeError,
    seeds: [
      '{"epoch":17,"ranges":[[1,200],[230,260]]}',
      '{"rates_hz":{"gps":2},"backlog_kbps":{"satellite":64}}',
    ],
    dictionary: contract_tokens,
    bytes_max,
  },
  {
    name: 'bounded-json',
    // What the counter lets through must be what the language's own parser accepts.
    read: (input) => {
      const text = input.toString();
      countValues(text, request_limits);
      return readJson(text, request_limits);
    },
    allows: (error) => error instanceof SyntaxError || error instanceof RangeError,
    seeds: ['{"a":[1,2,{"b":"c\\n"}],"d":null}', '"\\u00e9"', '-1.5e3'],
    dictionary: json_tokens,
    bytes_max,
  },
];
