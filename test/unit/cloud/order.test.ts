/** Which of two values is the newer one: the number says it, and the time of day never does. */
import { expect, it } from 'vitest';
import type { JsonObject } from '../../../src/contract/json.ts';
import { channels, upTopic } from '../../../src/contract/topics.ts';
import { readMessage, type Reception } from '../../../src/cloud/read-message.ts';
import { sqlStore, type Store } from '../../../src/cloud/store/sql-store.ts';
import { asset_id, kit_id, samples } from '../../support/contract-samples.ts';
import { onEachDatabase } from './each-database.ts';
import { gps, received, start_ms } from './story.ts';

const hour_ms = 3_600_000;

const announce = (seq: number, data: JsonObject = {}, time_ms = start_ms + seq): Reception =>
  received({
    channel: channels.asset(asset_id),
    seq,
    time_ms,
    data: { ...samples['announcement'], ...data },
  });
const birth = (seq: number, contract: string): Reception =>
  received({ channel: channels.state, seq, data: { ...samples['kitState'], contract } });

/** An enveloped `null`, as kits of contract 1.1 remove an asset. */
function removal(channel: string, seq: number): Reception {
  const text = JSON.stringify({ time: new Date(start_ms).toISOString(), epoch: 17, seq, data: null });
  return taken(channel, Buffer.from(text));
}

function taken(channel: string, payload: Uint8Array): Reception {
  const reception = readMessage(upTopic(kit_id, channel), payload);
  if (!reception) throw new Error(`not taken: ${channel}`);
  return reception;
}

const cleared = taken(channels.asset(asset_id), new Uint8Array());

onEachDatabase('the newest value', (open) => {
  const newStore = async (): Promise<Store> => sqlStore(await open());

  it('of a kit whose clock stepped back by an hour is the one with the greater number', async () => {
    const store = await newStore();
    const ahead_ms = start_ms + hour_ms;
    await store.commit(
      [announce(1, {}, ahead_ms), received({ ...gps(2, 47.1), time_ms: ahead_ms })],
      ahead_ms,
    );
    await store.commit([received({ ...gps(3, 47.2), time_ms: start_ms })], start_ms);
    const [feed] = await store.feeds(kit_id, asset_id);
    expect(feed).toMatchObject({ time_ms: start_ms, data: { lat: 47.2 } });
    await store.commit([received({ ...gps(2, 47.1), epoch: 16, time_ms: ahead_ms + hour_ms })], start_ms);
    expect((await store.feeds(kit_id, asset_id))[0]?.data).toMatchObject({ lat: 47.2 });
    await store.commit([received({ ...gps(1, 47.3), epoch: 18, time_ms: start_ms - hour_ms })], start_ms);
    expect((await store.feeds(kit_id, asset_id))[0]?.data).toMatchObject({ lat: 47.3 });
    // The asset was seen when its newest message says, not when the clock was wrong.
    const asset = await store.asset(kit_id, asset_id);
    expect(asset?.last_seen_at).toBe(new Date(start_ms - hour_ms).toISOString());
  });

  it('is found so by an older version beside this one too: it compares times unless one of them was not right', async () => {
    const database = await open();
    const store = sqlStore(database);
    await store.commit([received(gps(2, 47.1))], start_ms);
    const rows = await database.all('SELECT unsynced FROM feeds');
    expect(rows.map((row) => Number(row['unsynced']))).toEqual([1]);
  });

  it('since a birth with a clock that was not set, the kit is online since it arrived', async () => {
    const store = await newStore();
    const text = JSON.stringify({
      time: '2000-01-01T00:00:00.000Z',
      time_quality: 'unsynced',
      epoch: 17,
      seq: 1,
      data: samples['kitState'],
    });
    await store.commit([taken(channels.state, Buffer.from(text))], start_ms);
    expect((await store.kit(kit_id))?.since_ms).toBe(start_ms);
  });

  it('of an asset may be its removal, and an older announcement or removal that comes later changes nothing', async () => {
    const store = await newStore();
    await store.commit([birth(1, '1.1'), announce(5)], start_ms);
    await store.commit([removal(channels.asset(asset_id), 4)], start_ms);
    expect(await store.assets(kit_id)).toHaveLength(1);
    const { changes } = await store.commit([removal(channels.asset(asset_id), 6)], start_ms);
    expect(changes).toEqual([{ kind: 'asset_gone', kit_id, asset_id }]);
    await store.commit([announce(3)], start_ms);
    expect(await store.assets(kit_id)).toEqual([]);
    await store.commit([announce(7)], start_ms);
    expect(await store.assets(kit_id)).toHaveLength(1);
  });

  it('of the commands may be their removal', async () => {
    const store = await newStore();
    const list = { channel: channels.commands(asset_id), seq: 2, data: samples['commandList'] ?? {} };
    await store.commit([birth(1, '1.1'), announce(1), received(list)], start_ms);
    expect(await store.commands(kit_id, asset_id)).not.toEqual([]);
    await store.commit([removal(channels.commands(asset_id), 3)], start_ms);
    expect(await store.commands(kit_id, asset_id)).toEqual([]);
    await store.commit([received({ ...list, seq: 1 })], start_ms);
    expect(await store.commands(kit_id, asset_id)).toEqual([]);
  });

  it('is not touched by an empty payload of a kit that removes with a stamp, however late it comes', async () => {
    const store = await newStore();
    await store.commit([birth(1, '1.1'), announce(5)], start_ms);
    expect((await store.commit([cleared], start_ms)).changes).toEqual([]);
    expect(await store.assets(kit_id)).toHaveLength(1);
    await store.commit([birth(3, '1.10')], start_ms);
    await store.commit([cleared], start_ms);
    expect(await store.assets(kit_id)).toHaveLength(1);
  });

  it.each(['1.0', undefined])(
    'of an asset is removed by an empty payload of a kit of contract %s',
    async (contract) => {
      const store = await newStore();
      await store.commit([...(contract ? [birth(1, contract)] : []), announce(5)], start_ms);
      const { changes } = await store.commit([cleared], start_ms);
      expect(changes).toEqual([{ kind: 'asset_gone', kit_id, asset_id }]);
      expect(await store.assets(kit_id)).toEqual([]);
    },
  );
});
