/** Events of many kits: what is held is bounded, and who pages through them gets each event once, whatever its size and its time. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { writeEnvelope } from '../../../../src/contract/envelope.ts';
import { assetId } from '../../../../src/contract/identity.ts';
import { channels, upTopic } from '../../../../src/contract/topics.ts';
import { HistoryOperations } from '../../../../src/cloud/history/reading/operations.ts';
import { page_chars_max } from '../../../../src/cloud/history/reading/reader.ts';
import { type Reception, readMessage } from '../../../../src/cloud/read-message.ts';
import { openSqlite } from '../../../../src/cloud/sql/sqlite.ts';
import { sqlStore, type Store } from '../../../../src/cloud/store/sql-store.ts';
import { asset_id, kit_id } from '../../../support/contract-samples.ts';

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

function event(kit: string, seq: number, text_of_it: string): Reception {
  const time_ms = now_ms + seq * 10 + [...large_kits, small_kit].indexOf(kit);
  const text = writeEnvelope({ epoch: 1, seq, time_ms }, JSON.stringify({ text: text_of_it }));
  const reception = readMessage(upTopic(kit, channels.event(asset_id, 'blob')), Buffer.from(text));
  if (!reception) throw new Error('no channel of the contract');
  return reception;
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
    const history = new HistoryOperations(store);
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const filter = { from_ms: 0, to_ms: now_ms * 2, order, limit: 1_000, cursor };
      const page = await history.fleetEvents([...large_kits, small_kit], filter, async (part) => part());
      const size = page.events.reduce((sum, { data }) => sum + JSON.stringify(data).length, 0);
      expect(size).toBeLessThanOrEqual(page_chars_max);
      found.push(...page.events.map(({ kit_id: of, time }) => `${time} ${of}`));
      cursor = page.next ?? undefined;
    } while (cursor !== undefined);
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
  const atOnce = (kit: string, seq: number): Reception => {
    const text = writeEnvelope({ epoch: 1, seq, time_ms: now_ms }, '{}');
    const reception = readMessage(upTopic(kit, channels.event(asset_id, 'blob')), Buffer.from(text));
    if (!reception) throw new Error('no channel of the contract');
    return reception;
  };
  await store.commit(
    kits.flatMap((kit) => [1, 2, 3].map((seq) => atOnce(kit, seq))),
    now_ms,
  );
  const history = new HistoryOperations(store);
  const found: string[] = [];
  let pages = 0;
  let cursor: string | undefined;
  do {
    const filter = { from_ms: 0, to_ms: now_ms * 2, order, limit, cursor };
    const page = await history.fleetEvents(kits, filter, async (part) => part());
    found.push(...page.events.map((each) => each.kit_id));
    pages += 1;
    cursor = page.next ?? undefined;
  } while (cursor !== undefined);
  expect(pages).toBe(Math.ceil(9 / limit));
  const sorted = kits.flatMap((kit) => [kit, kit, kit]).sort();
  expect(found).toEqual(order === 'asc' ? sorted : sorted.toReversed());
});
