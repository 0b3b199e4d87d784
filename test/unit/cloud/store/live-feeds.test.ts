/** What sockets get of the feeds of a commit: never a message that is older than what the service had before. */
import { expect, it } from 'vitest';
import { sqlStore } from '../../../../src/cloud/store/sql-store.ts';
import type { Committed } from '../../../../src/cloud/stored/stored.ts';
import { onEachDatabase } from '../each-database.ts';
import { gps, received, start_ms } from '../story.ts';

function latitudesOf({ changes }: Committed): unknown[] {
  return changes.map((change) => (change.kind === 'feed' ? change.message.data['lat'] : change.kind));
}

onEachDatabase('the feeds of a commit', (open) => {
  it('reach sockets in the order of the kit, each of them', async () => {
    const store = sqlStore(await open());
    const committed = await store.commit(
      [6, 4, 5].map((seq) => received(gps(seq, seq))),
      start_ms,
    );
    expect(latitudesOf(committed)).toEqual([4, 5, 6]);
  });

  it('do not reach sockets when an earlier commit brought newer ones', async () => {
    const store = sqlStore(await open());
    await store.commit([received(gps(5, 5))], start_ms);
    expect(latitudesOf(await store.commit([received(gps(4, 4))], start_ms))).toEqual([]);
    const committed = await store.commit(
      [3, 7, 6].map((seq) => received(gps(seq, seq))),
      start_ms,
    );
    expect(latitudesOf(committed)).toEqual([6, 7]);
  });

  it('do not reach sockets when they are of an earlier epoch', async () => {
    const store = sqlStore(await open());
    await store.commit([received({ ...gps(5, 5), epoch: 18 })], start_ms);
    const receptions = [received({ ...gps(9, 9), epoch: 17 }), received({ ...gps(6, 6), epoch: 18 })];
    expect(latitudesOf(await store.commit(receptions, start_ms))).toEqual([6]);
  });
});
