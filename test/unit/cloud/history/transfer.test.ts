/** An export imported into an empty service answers as the service did that it was written by; imported again, it changes nothing. */
import { access, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { runProgram } from '../../../../src/cli/program.ts';
import { texts as cli_texts } from '../../../../src/cli/texts.ts';
import { channels } from '../../../../src/contract/topics.ts';
import { exportKit } from '../../../../src/cloud/history/transfer/export.ts';
import { importLines } from '../../../../src/cloud/history/transfer/import.ts';
import { linesIn } from '../../../../src/cloud/history/transfer/lines.ts';
import { texts } from '../../../../src/cloud/history/transfer/texts.ts';
import type { Reception } from '../../../../src/cloud/read-message.ts';
import { openSqlite } from '../../../../src/cloud/sql/sqlite.ts';
import { sqlStore, type Store } from '../../../../src/cloud/store/sql-store.ts';
import { asset_id, kit_id, samples } from '../../../support/contract-samples.ts';
import { eventually } from '../../../support/eventually.ts';
import { startServiceLab, type ServiceLab } from '../../../support/service/service-lab.ts';
import { onEachDatabase } from '../each-database.ts';
import { collected, divide, received, type Sent, truck } from '../story.ts';
import { recordedShell } from '../../cli/shell-of-test.ts';

const hour_ms = 3_600_000;
const day_ms = 24 * hour_ms;
const now_ms = Date.now();
const begin_ms = now_ms - 5 * day_ms;
const truck_id = '0b1e0a7e-6a64-4d8b-9a53-1f2e3d4c5b6a';
const partner_fix = { lat: 47, lon: 8, alt_m: null, bearing: null, speed_mps: null };

const messages_of_commit = 20;

type Unnumbered = Omit<Sent, 'seq'> & { readonly time_ms: number };

/** Four days of a kit with what is hard: a hole, one that is explained, a wrong clock, a time ahead, presence, a pushed fix. */
async function fill(store: Store): Promise<void> {
  let seq = 0;
  let waiting: Reception[] = [];
  const commit = async (time_ms: number): Promise<void> => {
    await store.commit(waiting, Math.max(begin_ms, Math.min(time_ms, now_ms)) + 1_000);
    waiting = [];
  };
  const send = async ({ channel, data, time_ms, time_quality }: Unnumbered): Promise<void> => {
    seq += 1;
    waiting.push(received({ channel, data, seq, time_ms, time_quality }));
    if (waiting.length === messages_of_commit) await commit(time_ms);
  };
  await store.beginHistory(begin_ms);
  await send({ channel: channels.asset(asset_id), data: samples['announcement'] ?? {}, time_ms: begin_ms });
  await send({ channel: channels.state, data: samples['kitState'] ?? {}, time_ms: begin_ms });
  const gps = channels.feed(asset_id, 'gps');
  for (let at = 0; at < 400; at += 1) {
    const time_ms = begin_ms + at * 900_000;
    if (at === 100) seq += 7;
    if (at === 200) seq += 40;
    const data = {
      lat: 47 + at / 1e4,
      lon: 8.5,
      alt_m: at % 9 === 0 ? null : 400,
      ground_speed: 2,
      heading: null,
    };
    await send({ channel: gps, data, time_ms });
    if (at % 50 === 0)
      await send({
        channel: channels.event(asset_id, 'motion'),
        data: { detected: at % 100 === 0 },
        time_ms,
      });
    if (at !== 150) continue;
    await commit(time_ms);
    await store.compactHistory(now_ms, true);
  }
  await send({ channel: gps, data: { lat: 1, lon: 1 }, time_ms: 1_000, time_quality: 'unsynced' });
  await send({ channel: gps, data: { lat: 2, lon: 2 }, time_ms: begin_ms + 9 * day_ms });
  await commit(now_ms);
  const drops = [{ epoch: 17, lane: 'feed', reason: 'thinned', rows: 40, lo: 205, hi: 255 }];
  await send({ channel: channels.drops, data: { drops }, time_ms: now_ms - hour_ms });
  await commit(now_ms);
  await store.addPartner(truck(truck_id));
  await store.pushFixes(
    kit_id,
    [{ asset_id: truck_id, fix: partner_fix, time_ms: now_ms - hour_ms }],
    now_ms,
  );
}

/** As JSON, without the last digits of numbers. */
const rounded = (answers: unknown): string =>
  JSON.stringify(answers, (_, value: unknown) =>
    typeof value === 'number' ? Number(value.toPrecision(13)) : value,
  );

async function exported(store: Store, left = 0): Promise<string> {
  return (await collected(exportKit(store, kit_id, left))).join('');
}

async function imported(store: Store, text: string): Promise<void> {
  await importLines(store, linesOf(text), Date.now);
  await divide(store, Date.now());
  while (await store.rollUpHistory(Date.now()));
}

async function* linesOf(text: string): AsyncGenerator<string, void, undefined> {
  yield* linesIn(chunksOf(text));
}

async function* chunksOf(text: string): AsyncGenerator<Uint8Array, void, undefined> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += 1_000) yield bytes.subarray(at, at + 1_000);
}

const labs: { close: () => Promise<void> }[] = [];

async function serve(store: Store): Promise<ServiceLab> {
  const lab = await startServiceLab(kit_id, { store });
  labs.push({ close: async () => lab.stop() });
  return lab;
}

/** What the service answers about the kit. */
async function answersOf({ url, key }: ServiceLab): Promise<unknown> {
  const span = `from=${begin_ms - day_ms}&to=${now_ms + 5 * day_ms}`;
  const kit = `/api/kits/${kit_id}`;
  const paths = [
    `${kit}/history?${span}&limit=5000&order=asc`,
    `${kit}/history?from=1970-01-01T00:00:00Z&to=1970-01-01T00:01:40Z`,
    `${kit}/series?${span}&select=${asset_id}:gps.lat&bucket_s=3600`,
    `${kit}/assets/${asset_id}/track?${span}`,
    `${kit}/events?${span}`,
    `/api/events?kits=${kit_id}&${span}`,
    `${kit}/completeness`,
    `${kit}/assets/${asset_id}`,
  ];
  const answers: unknown[] = [];
  for (const path of paths) {
    await eventually('the service answers', async () => {
      const response = await fetch(`${url}${path}`, { headers: { 'x-api-key': key } });
      if (response.status === 429) return false;
      const body: unknown = await response.json();
      expect({ path, status: response.status, body }).toMatchObject({ status: 200 });
      answers.push({ path, body });
      return true;
    });
  }
  return answers;
}

onEachDatabase('an export of the history', (open) => {
  afterEach(async () => {
    for (const lab of labs.splice(0)) await lab.close();
  });

  it(
    'answers in an empty service as it did where it was written, also when it is imported again',
    { tags: 'long' },
    async () => {
      const source = sqlStore(await open());
      await fill(source);
      const text = await exported(source);
      await divide(source, now_ms);
      while (await source.rollUpHistory(now_ms));
      const expected = await answersOf(await serve(source));
      const target = sqlStore(await open());
      await imported(target, text);
      const lab = await serve(target);
      expect(await answersOf(lab)).toEqual(expected);
      const sizes = await target.historySizes();
      await imported(target, text);
      expect(await answersOf(lab)).toEqual(expected);
      expect(await target.historySizes()).toEqual(sizes);
      expect((await target.historySizes())[0]?.messages).toBe((await source.historySizes())[0]?.messages);
    },
  );

  it('carries numbers whose messages are not kept any more, and what was erased', async () => {
    const source = sqlStore(await open());
    await fill(source);
    await source.eraseHistory({ kit_id, asset_id, before_ms: begin_ms + 2 * day_ms }, now_ms);
    const target = sqlStore(await open());
    await imported(target, await exported(source));
    expect(await target.historyRecord(kit_id)).toEqual(await source.historyRecord(kit_id));
    expect(await target.historySizes()).toEqual([
      expect.objectContaining({ kit_id, messages: (await source.historySizes())[0]?.messages }),
    ]);
  });

  it('is imported up to where it breaks off, and whole the next time', async () => {
    const source = sqlStore(await open());
    await fill(source);
    const text = await exported(source);
    const target = sqlStore(await open());
    const cut = text.slice(0, Math.floor(text.length / 2));
    await expect(imported(target, cut.slice(0, cut.lastIndexOf('\n') + 1))).rejects.toThrow(
      texts.ends_early(kit_id),
    );
    await imported(target, text);
    // The source has not divided everything: only where figures come from may differ, and the order of a sum.
    const answers = rounded(await answersOf(await serve(source)));
    expect(rounded(await answersOf(await serve(target)))).toBe(
      answers.replace('"source":"messages"', '"source":"figures"'),
    );
  });
});

it('is not taken for whole when it was cut between two kits, and what was read of it is in the history', async () => {
  const source = sqlStore(openSqlite(':memory:'));
  await fill(source);
  const text = await exported(source, 2);
  const target = sqlStore(openSqlite(':memory:'));
  await expect(imported(target, text)).rejects.toThrow(texts.kits_missing(2));
  expect((await target.historySizes())[0]?.messages).toBe((await source.historySizes())[0]?.messages);
  // Exports that were joined to one file are whole, and so is one of an earlier version.
  await imported(target, (await exported(source)).repeat(2));
  await imported(target, (await exported(source)).replace(',"left":0', ''));
  for (const store of [source, target]) await store.close();
});

describe('kit-connector history', () => {
  it('lists, exports and imports', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'kit-connector-history-'));
    const [from, to, file] = [join(dir, 'from.db'), join(dir, 'to.db'), join(dir, 'kits.ndjson.gz')];
    const source = openSqlite(from);
    await fill(sqlStore(source));
    await source.close();
    const run = async (...words: readonly string[]) => {
      const shell = recordedShell();
      const code = await runProgram(['history', ...words], shell);
      return { code, out: shell.stdout(), err: shell.stderr() };
    };
    expect((await run('list', '--database', from)).out).toContain(kit_id);
    const misspelt = join(dir, 'form.db');
    for (const words of [['list'], ['export', file]]) {
      const { code, err } = await run(...words, '--database', misspelt);
      expect({ code, err: err.trim() }).toEqual({ code: 1, err: cli_texts.no_database(misspelt) });
    }
    await expect(access(misspelt)).rejects.toMatchObject({ code: 'ENOENT' });
    expect(await run('export', file, '--database', from)).toMatchObject({ code: 0, err: '' });
    const lines = gunzipSync(await readFile(file))
      .toString()
      .trimEnd()
      .split('\n');
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ format: 'kit-connector-history', kit_id });
    expect(await run('import', file, '--database', to)).toMatchObject({ code: 0, err: '' });
    const listed = await run('list', '--database', to, '--json');
    expect(JSON.parse(listed.out)).toMatchObject([{ kit_id, messages: lines.filter(isMessage).length }]);
    const elsewhere = join(dir, 'other.ndjson');
    await writeFile(elsewhere, '{"some":"thing"}\n');
    const refused = await run('import', elsewhere, '--database', to);
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.err).toContain(cli_texts.not_imported(elsewhere, texts.line_unreadable(1)));
  });
});

function isMessage(line: string): boolean {
  return line.startsWith('{"time"');
}
