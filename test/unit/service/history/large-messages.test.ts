/** A kit with the largest messages: what the compactor holds in memory at a time is bounded, and nothing is lost by it. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { writeEnvelope } from '../../../../src/contract/envelope.ts';
import { channels, upTopic } from '../../../../src/contract/topics.ts';
import { segment_chars_max } from '../../../../src/service/history/compactor.ts';
import { messagesOf } from '../../../../src/service/history/segment.ts';
import { history_classes } from '../../../../src/service/history/message.ts';
import { type Reception, readMessage } from '../../../../src/service/ingest/read-message.ts';
import { openSqlite } from '../../../../src/service/store/sql/sqlite.ts';
import { SqlStore } from '../../../../src/service/store/sql-store.ts';
import { asset_id, kit_id } from '../../../support/contract-samples.ts';

const chars = 250_000;
/** More than two segments hold. */
const count = Math.ceil((2.5 * segment_chars_max) / chars);
const now_ms = Date.UTC(2026, 10, 20, 12);

let store: SqlStore;
beforeEach(async () => {
  store = new SqlStore(openSqlite(':memory:'));
  await store.beginHistory(now_ms);
});
afterEach(async () => store.close());

function largeMessage(seq: number): Reception {
  const data = JSON.stringify({ text: 'x'.repeat(chars) });
  const text = writeEnvelope({ epoch: 1, seq, time_ms: now_ms + seq }, data);
  const reception = readMessage(upTopic(kit_id, channels.feed(asset_id, 'blob')), Buffer.from(text));
  if (!reception) throw new Error('no channel of the contract');
  return reception;
}

async function segments() {
  const found = await store.historySegments({
    kit_id,
    classes: history_classes,
    from_ms: 0,
    to_ms: now_ms * 2,
    order: 'asc',
    after: undefined,
    limit: 100,
  });
  return found.map(({ body }) => messagesOf(body));
}

it('divides large messages in portions, into segments that fit into memory, each message once', async () => {
  for (let seq = 1; seq <= count; seq += 1) await store.commit([largeMessage(seq)], now_ms + seq);
  const portions: number[] = [];
  for (let divided = 1; divided > 0;) {
    divided = await store.compactHistory(now_ms + count, true);
    portions.push(divided);
  }
  const most = Math.ceil(segment_chars_max / chars);
  expect(Math.max(...portions)).toBeLessThanOrEqual(most);
  const divided = await segments();
  expect(Math.max(...divided.map((each) => each.length))).toBeLessThanOrEqual(most);
  expect(divided.flatMap((each) => each.map(({ seq }) => seq))).toEqual(
    Array.from({ length: count }, (_, index) => index + 1),
  );
  expect(await store.historyLanded(kit_id)).toEqual([]);
});
