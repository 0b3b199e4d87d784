/** A kit that got an old copy of its state back, and gives numbers to other messages than before. */
import { expect, it } from 'vitest';
import { channels } from '../../../../src/contract/topics.ts';
import { sqlStore, type Store } from '../../../../src/cloud/store/sql-store.ts';
import { texts } from '../../../../src/cloud/texts.ts';
import { asset_id, kit_id } from '../../../support/contract-samples.ts';
import { onEachDatabase } from '../each-database.ts';
import { divide, gps, received, type Sent, start_ms } from '../story.ts';

const later_ms = 600_000;
const seqs = Array.from({ length: 40 }, (_, n) => n + 1);
const first = seqs.map((seq) => gps(seq, 47));
const others = seqs.map((seq) => ({ ...gps(seq, 48), time_ms: start_ms + later_ms + seq }));

onEachDatabase('a number that came before', (open) => {
  async function opened(isDivided: boolean): Promise<Store> {
    const store = sqlStore(await open(), { keepsHistory: true });
    await store.commit(first.map(received), start_ms + 100);
    if (isDivided) await divide(store, start_ms + 100);
    return store;
  }

  it.each([
    { what: 'whose message was divided into segments', isDivided: true },
    { what: 'whose message has just landed', isDivided: false },
  ])('and comes with another message is refused and named: $what', async ({ isDivided }) => {
    const store = await opened(isDivided);
    const { refused } = await store.commit(others.map(received), start_ms + later_ms + 100);
    const channel = channels.feed(asset_id, 'gps');
    expect(refused).toMatchObject([
      { kit_id, what: channel, reason: texts.number_reused(17, 16, channel), count: 16 },
    ]);
    expect((await store.kit(kit_id))?.counts).toMatchObject({ duplicates: 40, refused: 16 });
  });

  it.each([
    { what: 'as it was', isDivided: true, again: first },
    { what: 'as it was, and has just landed', isDivided: false, again: first },
    {
      what: 'with its time corrected',
      isDivided: true,
      again: first.map((sent) => ({ ...sent, time_ms: start_ms + later_ms + sent.seq })),
    },
  ])('and comes again $what is a duplicate and no more', async ({ isDivided, again }) => {
    const store = await opened(isDivided);
    const { refused } = await store.commit(again.map(received), start_ms + later_ms + 100);
    expect(refused).toEqual([]);
    expect((await store.kit(kit_id))?.counts).toMatchObject({ duplicates: 40, refused: 0 });
  });

  it('and comes twice in one commit is named where the messages differ', async () => {
    const store = sqlStore(await open(), { keepsHistory: true });
    const event: Sent = {
      channel: channels.event(asset_id, 'link_status'),
      seq: 2,
      data: { status: 'offline' },
      time_ms: start_ms + 9,
    };
    const { refused } = await store.commit(
      [...first, ...first.slice(5), event].map(received),
      start_ms + 100,
    );
    expect(refused).toMatchObject([{ reason: texts.number_reused(17, 2, event.channel), count: 1 }]);
  });
});
