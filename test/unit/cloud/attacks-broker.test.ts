/** What one kit publishes to its own topics, and what that may cost the service of all kits. */
import { deflateSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { packBatch } from '../../../src/contract/batch/pack.ts';
import { type BatchItem } from '../../../src/contract/batch/writer.ts';
import type { JsonObject } from '../../../src/contract/json.ts';
import { channels, upTopic } from '../../../src/contract/topics.ts';
import { Ingest } from '../../../src/cloud/ingest/ingest.ts';
import { Changes } from '../../../src/cloud/changes.ts';
import { readMessage } from '../../../src/cloud/read-message.ts';
import { openSqlite } from '../../../src/cloud/sql/sqlite.ts';
import { sqlStore, type Store } from '../../../src/cloud/store/sql-store.ts';
import { asset_id, kit_id, samples } from '../../support/contract-samples.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { texts } from '../../../src/cloud/texts.ts';
import { start_ms } from './story.ts';

const open: Store[] = [];
afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
});
const newStore = (): Store => {
  const store = sqlStore(openSqlite(':memory:'));
  open.push(store);
  return store;
};

const envelope = (seq: number, data: string): Buffer =>
  Buffer.from(`{"time":"${new Date(start_ms).toISOString()}","epoch":17,"seq":${seq},"data":${data}}`);
const announcement = (extra: JsonObject): string => JSON.stringify({ ...samples['announcement'], ...extra });

describe('a message of a kit', () => {
  it.each([
    [
      'a list of 2 million commands',
      channels.commands(asset_id),
      `{"revision":1,"commands":[${'1,'.repeat(2_000_000)}1]}`,
      'bytes; at most',
    ],
    [
      '200,000 values in 400 kB',
      channels.commands(asset_id),
      `{"revision":1,"commands":[${'1,'.repeat(200_000)}1]}`,
      'more than 50000 values',
    ],
    [
      'arrays 100,000 deep',
      channels.feed(asset_id, 'gps'),
      `${'['.repeat(100_000)}${']'.repeat(100_000)}`,
      'nested deeper than 32 levels',
    ],
    [
      'a string of 300 kB',
      channels.feed(asset_id, 'gps'),
      `{"a":"${'x'.repeat(300_000)}"}`,
      'a string of more than',
    ],
  ])('with %s is refused in one sentence before it is built', (_, channel, data, reason) => {
    const reception = readMessage(upTopic(kit_id, channel), envelope(1, data));
    expect(reception?.messages).toEqual([]);
    expect(reception?.faults).toHaveLength(1);
    expect(reception?.faults[0]?.reason).toContain(reason);
    expect(reception?.faults[0]?.reason.length).toBeLessThan(500);
  });

  it('whose schema finds 16,000 faults is refused with the first of them', async () => {
    const data = `{"revision":1,"commands":[${'1,'.repeat(16_000)}1]}`;
    const reception = readMessage(upTopic(kit_id, channels.commands(asset_id)), envelope(1, data));
    const store = newStore();
    await store.commit(reception ? [reception] : [], start_ms);
    expect((await store.kit(kit_id))?.counts.refused).toBe(1);
    expect(await store.commands(kit_id, asset_id)).toEqual([]);
  });

  it('with a name of 200 kB is refused, and the asset beside it is stored', async () => {
    const store = newStore();
    const long = readMessage(
      upTopic(kit_id, channels.asset(asset_id)),
      envelope(1, announcement({ name: 'x'.repeat(200_000) })),
    );
    const good = readMessage(
      upTopic(kit_id, channels.asset(asset_id)),
      envelope(2, announcement({ name: 'Mast camera' })),
    );
    await store.commit(
      [long, good].flatMap((each) => each ?? []),
      start_ms,
    );
    expect((await store.assets(kit_id)).map(({ name }) => name)).toEqual(['Mast camera']);
    expect((await store.kit(kit_id))?.counts.refused).toBe(1);
  });
});

describe('what a kit published against the contract', () => {
  it('is named in the log once for each kit and kind, with the first fault in one short sentence', async () => {
    const ends = new AbortController();
    const log = recordingLog();
    const about = { store: newStore(), changes: new Changes(), group_ms: 1, onCommitted: () => undefined };
    const ingest = new Ingest({ ...about, log, signal: ends.signal });
    const many = deflateSync(`{"v":1,"historical":false,"groups":[${'1,'.repeat(400_000)}1]}`);
    const deep = envelope(1, `${'['.repeat(100_000)}${']'.repeat(100_000)}`);
    for (const [channel, payload] of [
      [channels.batch, many],
      [channels.feed(asset_id, 'gps'), deep],
      [channels.feed(asset_id, 'gps'), deep],
    ] as const) {
      const reception = readMessage(upTopic(kit_id, channel), payload);
      if (reception) await ingest.take(reception);
    }
    const lines = log.lines.filter(({ sentence }) => sentence === texts.log_message_invalid);
    ends.abort();
    expect(lines.map(({ facts }) => facts)).toMatchObject([
      { kit_id, reason: expect.stringContaining('more than') as string },
      { kit_id, reason: expect.stringContaining('nested deeper') as string },
    ]);
    for (const { facts } of lines) expect(JSON.stringify(facts).length).toBeLessThan(500);
  });
});

describe('a batch of a kit', () => {
  const item = (seq: number, channel: string, data: string): BatchItem => ({
    channel,
    epoch: 17,
    seq,
    time_ms: start_ms,
    data,
  });
  const feed = channels.feed(asset_id, 'gps');

  it('with one message that cannot be read gives the others, and reports which one', () => {
    const items = [
      item(1, feed, '{"lat":1}'),
      item(2, channels.asset(asset_id), announcement({ name: 'x'.repeat(300_000) })),
      item(3, 'feed/no-id/gps', '{}'),
      item(4, feed, `${'['.repeat(35)}${']'.repeat(35)}`),
      item(5, feed, '{"lat":2}'),
    ];
    const reception = readMessage(upTopic(kit_id, channels.batch), packBatch(items, { historical: true }));
    expect(reception?.messages.map(({ seq }) => seq)).toEqual([1, 5]);
    expect(reception?.faults).toMatchObject([
      {
        channel: channels.asset(asset_id),
        reason: expect.stringContaining('a string of more than') as string,
      },
      { channel: 'feed/no-id/gps', reason: expect.stringContaining('is not a UUID') as string },
      { channel: feed, reason: expect.stringContaining('nested deeper than 32 levels') as string },
    ]);
  });

  it('of 8 kB that stands for millions of values is cut off at 300,000', () => {
    const rows = 10_000;
    const ones = Array<number>(rows).fill(1).join(',');
    const long = JSON.stringify(Array<number>(180).fill(0));
    const text = `{"v":1,"historical":false,"groups":[{"e":1,"ch":"${feed}","seq":[${ones}],"t":[${ones}],"k":["a"],"c":[{"c":${long}}]}]}`;
    const payload = deflateSync(text);
    expect(payload.length).toBeLessThan(8_192);
    const reception = readMessage(upTopic(kit_id, channels.batch), payload);
    expect(reception?.messages.length).toBeLessThanOrEqual(300_000 / 181 + 1);
    expect(reception?.faults).toEqual([
      {
        channel: 'batch',
        reason: expect.stringMatching(/^more than 300000 values; 8\d{3} messages not read$/u) as string,
      },
    ]);
  });

  it('of 10,000 messages that cannot be read is left after a hundred', () => {
    const items = Array.from({ length: 10_000 }, (_, seq) => item(seq, 'feed/no-id/gps', '{}'));
    const reception = readMessage(upTopic(kit_id, channels.batch), packBatch(items, { historical: true }));
    expect(reception?.messages).toEqual([]);
    expect(reception?.faults).toHaveLength(101);
    expect(reception?.faults.at(-1)).toEqual({
      channel: 'batch',
      reason: 'too many faults; 9900 messages not read',
    });
  });

  it('of a thousand epochs is read up to the 256th', () => {
    const items = Array.from({ length: 1_000 }, (_, at) => ({
      ...item(1, feed, '{"lat":47}'),
      epoch: at + 1,
    }));
    const reception = readMessage(upTopic(kit_id, channels.batch), packBatch(items, { historical: true }));
    expect(reception?.messages.map(({ epoch }) => epoch)).toEqual(
      Array.from({ length: 256 }, (_, at) => at + 1),
    );
    expect(reception?.faults).toEqual([
      { channel: 'batch', reason: 'more than 256 epochs; 744 messages not read' },
    ]);
  });

  it('reports what its messages take in memory, so that a transaction can be bounded', () => {
    const text = '{"lat":47,"note":"xxxxxxxx"}';
    const items = Array.from({ length: 100 }, (_, seq) => item(seq, feed, text));
    const reception = readMessage(upTopic(kit_id, channels.batch), packBatch(items, { historical: true }));
    const [values, value_bytes] = [3, 32];
    expect(reception?.weight).toBe(100 * (text.length + values * value_bytes));
  });
});
