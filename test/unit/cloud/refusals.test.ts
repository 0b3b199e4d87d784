/** Why a message was refused: its reason is kept, with how often (metron#972, benthos-umh#425: what is dropped without a word looks healthy). */
import { describe, expect, it } from 'vitest';
import { packBatch } from '../../../src/contract/batch/pack.ts';
import { writeEnvelope } from '../../../src/contract/envelope.ts';
import { channels, upTopic } from '../../../src/contract/topics.ts';
import { summaryOf } from '../../../src/cloud/kit-list.ts';
import { queueResource } from '../../../src/cloud/api/views.ts';
import { readMessage } from '../../../src/cloud/read-message.ts';
import { openSqlite } from '../../../src/cloud/sql/sqlite.ts';
import { sqlStore, type Store } from '../../../src/cloud/store/sql-store.ts';
import { texts } from '../../../src/cloud/texts.ts';
import { asset_id, kit_id, samples, task_id } from '../../support/contract-samples.ts';
import { onEachDatabase } from './each-database.ts';
import { start_ms } from './story.ts';

const day_ms = 86_400_000;

const enveloped = (data: unknown, seq = 1): string =>
  writeEnvelope({ epoch: 17, seq, time_ms: start_ms }, JSON.stringify(data));

async function send(
  store: Store,
  channel: string,
  payload: string | Uint8Array,
  now_ms = start_ms,
): Promise<void> {
  const reception = readMessage(upTopic(kit_id, channel), Buffer.from(payload));
  if (!reception) throw new Error(`no topic of a kit: ${channel}`);
  await store.commit([reception], now_ms);
}

async function queueOf(store: Store, now_ms = start_ms) {
  const kit = await store.kit(kit_id);
  if (!kit) throw new Error('the kit is not known');
  const attention = summaryOf(kit, [], now_ms).attention.filter(
    ({ key }) => key === 'refused' || key === 'dropped',
  );
  return { ...queueResource(kit, now_ms), attention };
}

const feed = channels.feed(asset_id, 'gps');
const status = channels.event(asset_id, 'asset_status');

describe('the reason for which a message is refused', () => {
  it.each([
    [
      channels.telemetry,
      enveloped({ battery: 'full' }),
      'data.battery: expected number, received string "full"',
    ],
    [
      channels.telemetry,
      enveloped({ battery: 200 }),
      'data.battery: Too big: expected number to be <=100, received 200',
    ],
    [channels.telemetry, enveloped([1]), 'data: expected an object'],
    [channels.telemetry, '{"time":', 'Unexpected end of JSON input'],
    [channels.telemetry, '[1]', 'expected object, received array'],
    [
      channels.telemetry,
      enveloped({}).replace('"epoch":17', '"epoch":"x"'),
      'epoch: expected number, received string "x"',
    ],
    [channels.telemetry, '', 'the payload is empty'],
    [
      channels.state,
      enveloped({ online: 'yes' }),
      /^data\.online: expected boolean, received string "yes" \(and \d+ more\)$/u,
    ],
    [
      channels.asset(asset_id),
      enveloped({ ...samples['announcement'], id: task_id }),
      `data.id: expected the id in the topic, received "${task_id}"`,
    ],
    [feed, enveloped('here'), 'data: expected an object'],
    [feed, enveloped({ text: 'x'.repeat(70_000) }), texts.feed_too_large(70_011, 65_536)],
    [status, enveloped({ status: 'gone' }), /^data\.status: Invalid option: .*, received "gone"$/u],
    [channels.drops, enveloped({ drops: [] }), /^data\.drops: Too small/u],
    [channels.roster, enveloped({ assets: 7 }), 'data.assets: expected array, received number 7'],
    ['feed/no-id/gps', enveloped({}), '"no-id" is not a UUID'],
    // What a reader cannot see, and what fills a page.
    [
      channels.telemetry,
      enveloped({ battery: `\u{1b}[2J${'x'.repeat(500)}` }),
      `data.battery: expected number, received string "[2J${'x'.repeat(57)}"`,
    ],
  ])('is in the queue of the kit: on %s (%#)', async (channel, payload, reason) => {
    const store = sqlStore(openSqlite(':memory:'));
    await send(store, channel, payload);
    const at = new Date(start_ms).toISOString();
    const queue = await queueOf(store);
    expect(queue.refused_last[0]?.reason).toMatch(reason);
    expect(queue).toMatchObject({
      refused: 1,
      refused_last: [
        {
          time: at,
          since: at,
          channel,
          count: 1,
        },
      ],
      attention: [{ key: 'refused', value: 1 }],
    });
  });
});

onEachDatabase('a message that breaks the contract', (open) => {
  it('in one part is refused for that part: the others are stored', async () => {
    const store = sqlStore(await open());
    await send(store, channels.telemetry, enveloped({ battery: 'full', battery_charging: true }));
    expect((await store.kit(kit_id))?.parts).toMatchObject({ battery_charging: { data: true } });
    expect(await queueOf(store)).toMatchObject({ refused: 1, refused_last: [{ count: 1 }] });
  });

  it('in a batch is named by its own topic, also the presence, which no batch may have', async () => {
    const store = sqlStore(await open());
    const item = (channel: string, seq: number, data: unknown) => ({
      channel,
      epoch: 17,
      seq,
      time_ms: start_ms,
      data: JSON.stringify(data),
    });
    const items = [
      item(channels.telemetry, 1, { battery: 'full' }),
      item(channels.state, 2, samples['kitState']),
    ];
    await send(store, channels.batch, packBatch(items, { historical: false }));
    const { refused_last } = await queueOf(store);
    expect(refused_last.map(({ channel }) => channel).sort()).toEqual([channels.state, channels.telemetry]);
  });

  it('is counted with those of its kind, whatever their values and ids, and the kinds have an end', async () => {
    const store = sqlStore(await open());
    for (const [seq, value] of ['full', 'half', 'a "quoted" word'].entries())
      await send(store, channels.telemetry, enveloped({ battery: value }, seq + 1), start_ms + seq);
    expect(await queueOf(store)).toMatchObject({
      refused: 3,
      refused_last: [
        {
          time: new Date(start_ms + 2).toISOString(),
          since: new Date(start_ms).toISOString(),
          count: 3,
          reason: 'data.battery: expected number, received string "a \\"quoted\\" word"',
        },
      ],
    });
    for (let n = 0; n < 30; n += 1)
      await send(
        store,
        channels.event(asset_id, `kind_${'x'.repeat(n + 1)}`),
        enveloped(n, n + 10),
        start_ms + 100 + n,
      );
    const { refused, refused_last } = await queueOf(store);
    expect(refused).toBe(33);
    expect(refused_last).toHaveLength(16);
  });

  it('needs attention for a day, and is counted anew after a day without one; the total stays', async () => {
    const store = sqlStore(await open());
    await send(store, channels.telemetry, enveloped({ battery: 'full' }, 1));
    await send(store, channels.telemetry, enveloped({ battery: 'full' }, 2), start_ms + 1_000);
    expect((await queueOf(store, start_ms + day_ms)).attention).toMatchObject([{ key: 'refused', value: 2 }]);
    expect(await queueOf(store, start_ms + 1_000 + day_ms)).toMatchObject({
      attention: [],
      refused: 2,
      refused_last: [{ count: 2 }],
    });
    await send(store, channels.telemetry, enveloped({ battery: 'full' }, 3), start_ms + 3 * day_ms);
    expect(await queueOf(store, start_ms + 3 * day_ms)).toMatchObject({
      attention: [{ value: 1 }],
      refused: 3,
    });
  });

  it('is known to every replica, and after a restart', async () => {
    const database = await open();
    const replicas = [sqlStore(database), sqlStore(database)] as const;
    await send(replicas[0], channels.telemetry, enveloped({ battery: 'full' }, 1));
    await send(replicas[1], channels.telemetry, enveloped({ battery: 'full' }, 2), start_ms + 1);
    expect(await queueOf(sqlStore(database))).toMatchObject({ refused: 2, refused_last: [{ count: 2 }] });
  });

  it('loses its reason with the history that is erased, also when it comes later, and stays counted', async () => {
    const store = sqlStore(await open());
    await send(store, channels.telemetry, enveloped({ battery: 'secret' }, 1));
    await store.eraseHistory({ kit_id, asset_id: undefined, before_ms: start_ms + 1 }, start_ms + 1);
    await send(store, channels.telemetry, enveloped({ battery: 'secret' }, 2), start_ms + 2);
    const queue = await queueOf(store);
    expect(queue).toMatchObject({ refused: 2, refused_last: [{ count: 1, reason: texts.reason_erased }] });
    expect(JSON.stringify(queue)).not.toContain('secret');
  });
});

onEachDatabase('a report of dropped messages', (open) => {
  it('needs attention for a day with its reasons, and superseded values need none', async () => {
    const store = sqlStore(await open());
    const drop = (reason: string, rows: number) => ({
      epoch: 17,
      lane: 'feed',
      reason,
      rows,
      lo: 1,
      hi: 500,
    });
    await send(store, channels.drops, enveloped({ drops: [drop('superseded', 9)] }, 1_000));
    expect(await queueOf(store)).toMatchObject({ attention: [], dropped_last: [] });
    await send(store, channels.drops, enveloped({ drops: [drop('thinned', 40), drop('expired', 2)] }, 1_001));
    await send(store, channels.drops, enveloped({ drops: [drop('thinned', 5)] }, 1_002));
    const queue = await queueOf(store);
    expect(queue).toMatchObject({ dropped: 47, attention: [{ key: 'dropped', value: 47 }] });
    expect(queue.dropped_last).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ lane: 'feed', reason: 'thinned', count: 45 }),
        expect.objectContaining({ lane: 'feed', reason: 'expired', count: 2 }),
      ]),
    );
    expect(await queueOf(store, start_ms + day_ms)).toMatchObject({ dropped: 47, attention: [] });
  });
});
