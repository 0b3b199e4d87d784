/** What an export makes in one turn, and so holds for a client that reads slowly; and what it still gives once that is erased. */
import { OpenAPIHono } from '@hono/zod-openapi';
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { HistoryOperations } from '../../../../../src/cloud/history/reading/operations.ts';
import type { Env } from '../../../../../src/cloud/http/context.ts';
import { exportRoutes, portion_chars } from '../../../../../src/cloud/http/history/export.ts';
import { HistoryGate } from '../../../../../src/cloud/http/history/gate.ts';
import { turn } from '../../../../../src/platform/time.ts';
import { Changes } from '../../../../../src/cloud/changes.ts';
import { Service } from '../../../../../src/cloud/service.ts';
import { openSqlite } from '../../../../../src/cloud/sql/sqlite.ts';
import { sqlStore, type Store } from '../../../../../src/cloud/store/sql-store.ts';
import { kit_id } from '../../../../support/contract-samples.ts';
import { recordingLog } from '../../../../support/recording-log.ts';
import { gps, received, start_ms } from '../../story.ts';

const count = 2_000;

let store: Store;
beforeEach(async () => {
  store = sqlStore(openSqlite(':memory:'));
  await store.beginHistory(start_ms);
  const messages = Array.from({ length: count }, (_, n) => received(gps(n + 1, 47 + n / count)));
  for (let at = 0; at < count; at += 500) await store.commit(messages.slice(at, at + 500), start_ms);
});
afterEach(async () => store.close());

async function exported(format: string): Promise<ReadableStream<Uint8Array>> {
  const refuse = async (): Promise<never> => Promise.reject(new Error('there is no kit'));
  const dispatcher = { dispatch: refuse, cancel: refuse };
  const parts = { store, dispatcher, changes: new Changes(), log: recordingLog(), now: Date.now };
  const app = new OpenAPIHono<Env>();
  app.use(async (c, next) => {
    c.set('principal', { key_id: 'k', user_id: 'u', label: 'test', scopes: ['read'], kits: '*' });
    await next();
  });
  const access = { isStillKnown: async () => true };
  app.route('/', exportRoutes(new Service(parts), new HistoryOperations(store), new HistoryGate(), access));
  const span = `from=${start_ms}&to=${start_ms + 86_400_000}`;
  const { status, body } = await app.request(
    `/api/kits/${kit_id}/export?format=${format}&${span}`,
    undefined,
    { incoming: { headers: {}, socket: { remoteAddress: '127.0.0.1' } } },
  );
  expect(status).toBe(200);
  if (!body) throw new Error('no body');
  return body;
}

it.each(['ndjson', 'csv'])(
  'makes small portions of a page, with a turn for others after each: %s',
  async (format) => {
    const portions: Uint8Array[] = [];
    let turns = 0;
    const others = new AbortController();
    const countTurns = async (): Promise<void> => {
      for (; !others.signal.aborted; turns += 1) await turn();
    };
    const counted = countTurns();
    const came_in = new Set<number>();
    for await (const portion of await exported(format)) {
      portions.push(portion);
      came_in.add(turns);
    }
    others.abort();
    await counted;
    // The head and the end may come with their neighbours.
    expect(portions.length).toBeGreaterThan(4);
    expect(came_in.size).toBeGreaterThanOrEqual(portions.length - 2);
    const lines = Buffer.concat(portions).toString().trimEnd().split('\n');
    expect(lines).toHaveLength(count + 1);
    expect(Math.max(...portions.map(({ length }) => length))).toBeLessThan(portion_chars + 1_000);
  },
);

it('reads pages of about a megabyte, however much there is: a client may take minutes over one', async () => {
  const large_chars = 100_000;
  const messages = Array.from({ length: 30 }, (_, n) => {
    const { channel, seq, data } = gps(count + n + 1, 47);
    return received({ channel, seq, data: { ...data, note: 'x'.repeat(large_chars) } });
  });
  await store.commit(messages, start_ms);
  const read = vi.spyOn(HistoryOperations.prototype, 'page');
  onTestFinished(() => read.mockRestore());
  let bytes = 0;
  for await (const { length } of await exported('ndjson')) bytes += length;
  expect(bytes).toBeGreaterThan(30 * large_chars);
  const pages = await Promise.all(
    read.mock.results.map(async ({ value }) => value as ReturnType<HistoryOperations['page']>),
  );
  const sizes = pages.map(({ messages: of_page }) => of_page.reduce((sum, { data }) => sum + data.length, 0));
  expect(Math.max(...sizes)).toBeLessThan(1_300_000);
});

it('gives nothing of what was erased while its client took a portion, though it had read it before', async () => {
  const reader = (await exported('ndjson')).getReader();
  const { value: first = new Uint8Array() } = await reader.read();
  const seqsIn = (portion: Uint8Array): number[] =>
    Array.from(
      Buffer.from(portion)
        .toString()
        .matchAll(/"seq":(\d+)/gu),
      ([, seq]) => Number(seq),
    );
  const last = seqsIn(first).at(-1) ?? 0;
  expect(last).toBeGreaterThan(0);
  const kept_from = 1_900;
  const before_ms = start_ms + kept_from;
  await store.eraseHistory({ kit_id, asset_id: undefined, before_ms }, before_ms);
  const rest: Uint8Array[] = [];
  for (let part = await reader.read(); !part.done; part = await reader.read()) rest.push(part.value);
  // One portion may have been made already, for the moment at which the client takes it.
  const later = seqsIn(Buffer.concat(rest.slice(1)));
  expect(later.some((seq) => seq < kept_from)).toBe(false);
  const kept = seqsIn(Buffer.concat(rest)).filter((seq) => seq >= kept_from);
  expect(kept).toHaveLength(count - kept_from + 1);
  expect(Buffer.concat(rest).toString()).toMatch(/\{"next":null\}\n$/u);
});
