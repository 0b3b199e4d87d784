/** Events of many kits: what is held is bounded, and who pages through them gets each event once, whatever its size and its time. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { assetId } from '../../../../src/contract/identity.ts';
import { channels } from '../../../../src/contract/topics.ts';
import type { EventPage } from '../../../../src/cloud/api/history-resources.ts';
import { HistoryOperations } from '../../../../src/cloud/history/reading/operations.ts';
import { page_chars_max } from '../../../../src/cloud/history/reading/reader.ts';
import type { Reception } from '../../../../src/cloud/read-message.ts';
import { openSqlite } from '../../../../src/cloud/sql/sqlite.ts';
import { sqlStore, type Store } from '../../../../src/cloud/store/sql-store.ts';
import { asset_id, kit_id } from '../../../support/contract-samples.ts';
import { received } from '../story.ts';

const chars = 250_000;
const now_ms = Date.UTC(2026, 10, 20, 12);
/** The kits with large events have more than a page each; their times alternate. */
const large_kits = [0, 1].map((n) => assetId(kit_id, `kit-${n}`));
const small_kit = assetId(kit_id, 'kit-2');
const large_each = Math.ceil((1.2 * page_chars_max) / chars);
const small_events = 60;

let store: Store;
beforeEach(async () => {
  store = sqlStore(openSqlite(':memory:'));
  await store.beginHistory(now_ms);
});
afterEach(async () => store.close());

const event = (kit: string, seq: number, text: string, time_ms?: number): Reception => {
  const its_ms = now_ms + seq * 10 + [...large_kits, small_kit].indexOf(kit);
  const channel = channels.event(asset_id, 'blob');
  return received({ kit, channel, seq, data: { text }, time_ms: time_ms ?? its_ms });
};

/** The events of all pages, and how large each of these is. */
async function pagesOf(order: 'asc' | 'desc', limit: number) {
  const history = new HistoryOperations(store);
  const pages: EventPage['events'][] = [];
  let cursor: string | undefined;
  do {
    const filter = { from_ms: 0, to_ms: now_ms * 2, order, limit, cursor };
    const page = await history.fleetEvents([...large_kits, small_kit], filter, async (part) => part());
    pages.push(page.events);
    cursor = page.next ?? undefined;
  } while (cursor !== undefined);
  return pages;
}

it.each(['asc', 'desc'] as const)(
  'gives each event of several kits in answers of bounded size, %s',
  { tags: 'long' },
  async (order) => {
    const large = 'x'.repeat(chars);
    const all = Array.from({ length: large_each }, (_, index) =>
      large_kits.map((kit) => event(kit, index + 1, large)),
    );
    for (const some of all) await store.commit(some, now_ms);
    const small = Array.from({ length: small_events }, (_, index) => event(small_kit, index + 1, ''));
    await store.commit(small, now_ms);
    const pages = await pagesOf(order, 1_000);
    for (const events of pages)
      expect(events.reduce((sum, { data }) => sum + JSON.stringify(data).length, 0)).toBeLessThanOrEqual(
        page_chars_max,
      );
    const found = pages.flat().map(({ kit_id: of, time }) => `${time} ${of}`);
    const wanted = [...found].sort();
    expect(found).toEqual(order === 'asc' ? wanted : wanted.toReversed());
    expect(found).toHaveLength(2 * large_each + small_events);
    expect(new Set(found).size).toBe(found.length);
  },
);

it.each([
  ['asc', 1],
  ['asc', 2],
  ['asc', 5],
  ['desc', 1],
  ['desc', 2],
  ['desc', 5],
] as const)('gives each event of one moment of three kits once, %s in pages of %i', async (order, limit) => {
  const kits = [...large_kits, small_kit];
  const receptions = kits.flatMap((kit) => [1, 2, 3].map((seq) => event(kit, seq, '', now_ms)));
  await store.commit(receptions, now_ms);
  const pages = await pagesOf(order, limit);
  expect(pages).toHaveLength(Math.ceil(9 / limit));
  const found = pages.flat().map((each) => each.kit_id);
  const sorted = kits.flatMap((kit) => [kit, kit, kit]).sort();
  expect(found).toEqual(order === 'asc' ? sorted : sorted.toReversed());
});
