/** The counters of a kit are those of its messages, though a commit adds them before it knows which messages are new and valid. */
import { expect, it } from 'vitest';
import { channels } from '../../../../src/contract/topics.ts';
import { sqlStore } from '../../../../src/cloud/store/sql-store.ts';
import { kit_id, task_id } from '../../../support/contract-samples.ts';
import { onEachDatabase } from '../each-database.ts';
import { gps, received, start_ms } from '../story.ts';

const battery = (seq: number, value: number | string = seq) =>
  received({ channel: channels.telemetry, seq, data: { battery: value } });

onEachDatabase('the counters of a commit', (open) => {
  it('count new, repeated and refused messages apart, of old kits and of new ones', async () => {
    const database = await open();
    const store = sqlStore(database);
    const { new_kits } = await store.commit([battery(1), received(gps(2, 47))], start_ms);
    expect(new_kits).toEqual([kit_id]);
    const other = { ...battery(1), kit_id: task_id };
    const second = await store.commit(
      [battery(1), battery(3), battery(3), battery(4, 'full'), received(gps(5, 47)), other],
      start_ms + 1_000,
    );
    expect(second.new_kits).toEqual([task_id]);
    const kit = await store.kit(kit_id);
    expect(kit).toMatchObject({
      heard_ms: start_ms + 1_000,
      counts: { received: 5, duplicates: 2, refused: 1 },
    });
    expect(await store.kit(task_id)).toMatchObject({
      heard_ms: start_ms + 1_000,
      counts: { received: 1, duplicates: 0, refused: 0 },
    });
    const landed = await database.all(
      'SELECT kit_id, SUM(messages) AS messages FROM history_in GROUP BY kit_id',
    );
    const counted = await database.all('SELECT kit_id, landed FROM kits');
    for (const row of counted) {
      const of = landed.find((each) => each['kit_id'] === row['kit_id']);
      expect(Number(row['landed'])).toBe(Number(of?.['messages']));
    }
  });

  it('leave the time of the last message where an older commit comes later', async () => {
    const store = sqlStore(await open());
    await store.commit([battery(1)], start_ms + 5_000);
    await store.commit([battery(2)], start_ms);
    expect(await store.kit(kit_id)).toMatchObject({ heard_ms: start_ms + 5_000, counts: { received: 2 } });
  });
});
