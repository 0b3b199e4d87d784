/** An erasure leaves nothing: neither in answers nor in the files and dumps of the database. */
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { inflateSync } from 'node:zlib';
import Sqlite from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/contract/json.ts';
import { channels } from '../../../../src/contract/topics.ts';
import type { Group } from '../../../../src/cloud/history/segment.ts';
import { history_classes } from '../../../../src/cloud/history/message.ts';
import { landedGroups, newBudget, segmentGroups } from '../../../../src/cloud/history/reading/reader.ts';
import { exportKit } from '../../../../src/cloud/history/transfer/export.ts';
import type { Reception } from '../../../../src/cloud/read-message.ts';
import type { Database } from '../../../../src/cloud/sql/database.ts';
import { openPostgres } from '../../../../src/cloud/sql/postgres.ts';
import { openSqlite } from '../../../../src/cloud/sql/sqlite.ts';
import { erasable_tables } from '../../../../src/cloud/sql/tables.ts';
import { sqlStore, type Store } from '../../../../src/cloud/store/sql-store.ts';
import { texts } from '../../../../src/cloud/texts.ts';
import { asset_id, kit_id } from '../../../support/contract-samples.ts';
import { peerMissing, program } from '../../../support/peers.ts';
import { seededRandom } from '../../../support/random.ts';
import { postgres_password, startPostgres } from '../../../support/database/postgres.ts';
import { withDirectory } from '../../../support/temporary.ts';
import { onEachDatabase } from '../each-database.ts';
import { collected, batchOf, divide, historyOf, received, report, start_ms } from '../story.ts';

const other_id = '2b671a64-40d5-591e-99b0-da01ff1f3342';
const erased_word = 'qzvkerasedxw';
const kept_word = 'qzvkkeptxw';
/** Newest values and tasks, which stay. */
const newest_word = 'qzvknewestxw';
const hour_ms = 3_600_000;
const day_ms = 24 * hour_ms;

/** A part of a compressed body: long enough to be found in one place only. */
const fragment_bytes = 24;
const fragment_every = 160;

/** Two days of two assets, divided, with figures, and some that has landed since; tasks and newest values. */
async function fill(store: Store): Promise<void> {
  let seq = 0;
  // Equal values would look like traces.
  const random = seededRandom(1);
  const next = (channel: string, data: JsonObject, time_ms: number) => {
    seq += 1;
    return { channel, seq, time_ms, data: JSON.stringify(data) };
  };
  for (let commit = 0; commit < 40; commit += 1) {
    const items = Array.from(
      { length: 10 },
      (_, at) => start_ms - 2 * day_ms + (commit * 10 + at) * 400_000,
    ).flatMap((time_ms) =>
      [asset_id, other_id].flatMap((id) => {
        const word = id === asset_id ? erased_word : kept_word;
        const [lat, lon] = [random.below(1e9) / 1e7, random.below(1e9) / 1e7];
        return [
          next(channels.feed(id, 'gps'), { lat, lon, note: `${word}${random.below(1e9)}` }, time_ms),
          next(channels.feed(id, 'battery'), { [`level_${word}`]: random.below(1e6) }, time_ms),
          next(channels.event(id, 'motion'), { note: `${word}${random.below(1e9)}` }, time_ms),
        ];
      }),
    );
    await store.commit([batchOf(items)], start_ms);
    if (commit % 8 === 3) await store.compactHistory(start_ms, true);
    if (commit % 10 === 9) await store.rollUpHistory(start_ms);
  }
  for (const id of [asset_id, other_id]) {
    const about = { ...report('completed', 2), asset_id: id, task_id: id, result: { note: newest_word } };
    await store.commit([received({ channel: channels.task(id), seq: (seq += 1), data: about })], start_ms);
    const note = { note: newest_word };
    const feeds = [channels.feed(id, 'gps'), channels.feed(id, 'battery'), channels.event(id, 'motion')];
    await store.commit(
      feeds.map((channel) => received({ channel, seq: (seq += 1), data: note })),
      start_ms,
    );
  }
}

/** What has to be found in the files before, and not after: the word, and parts of the compressed bodies that hold it. */
async function tracesOf(database: Database): Promise<readonly Buffer[]> {
  const traces = [Buffer.from(erased_word)];
  for (const table of ['history', 'history_in', 'history_days']) {
    for (const { body } of await database.all(`SELECT body FROM ${table}`)) {
      if (!(body instanceof Uint8Array)) throw new TypeError('not binary');
      const bytes = Buffer.from(body);
      if (bytes[0] === 0x5b || !inflateSync(bytes).includes(erased_word)) continue;
      for (let at = 64; at + fragment_bytes < bytes.length; at += fragment_every)
        traces.push(bytes.subarray(at, at + fragment_bytes));
    }
  }
  return traces;
}

async function foundIn(files: readonly string[], traces: readonly Buffer[]): Promise<number> {
  let found = 0;
  // What the server has removed since it was listed holds nothing.
  const contents = await Promise.all(
    files.map(async (file) => readFile(file).catch((error: unknown) => gone(error))),
  );
  for (const trace of traces) if (contents.some((content) => content.includes(trace))) found += 1;
  return found;
}

function gone(error: unknown): Buffer {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return Buffer.alloc(0);
  throw error;
}

async function filesUnder(dir: string, isWanted: (path: string) => boolean): Promise<string[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter(isWanted);
}

const erasures = [
  ['an asset', asset_id],
  ['the kit', undefined],
] as const;

/** One message about each of the two assets, observed before the erasure and delivered after it. */
const late = (): readonly Reception[] =>
  [asset_id, other_id].map((id, at) =>
    received({ channel: channels.feed(id, 'gps'), seq: 9_000 + at, data: { lat: 47, lon: 8, alt_m: 400 } }),
  );

onEachDatabase('an erasure', (open) => {
  it.each(erasures)('of %s covers what arrives later, before and after it is divided', async (_, id) => {
    const store = sqlStore(await open());
    await fill(store);
    const before_ms = start_ms + hour_ms;
    await store.eraseHistory({ kit_id, asset_id: id, before_ms }, before_ms);
    await store.commit(late(), start_ms);
    const stretch = { kit_id, classes: history_classes, from_ms: 0, to_ms: before_ms, order: 'asc' } as const;
    const isLate = (channel: string, seq: number): boolean =>
      channel.endsWith('/gps') && (seq === 9_000 || seq === 9_001);
    const seen = async () => {
      const late_ones = (await historyOf(store)).filter(({ channel, seq }) => isLate(channel, seq));
      const exported = await collected(exportKit(store, kit_id, 0));
      const groups: Group[] = [];
      for await (const group of landedGroups(store, stretch, newBudget())) groups.push(group);
      for await (const group of segmentGroups(store, stretch, newBudget())) groups.push(group);
      return {
        channels_seen: late_ones.map(({ channel }) => channel),
        exported: exported.some((line) => line.includes(asset_id) && line.includes('"seq":9000')),
        figures: groups.flatMap(({ channel, seqs }) => seqs.filter((seq) => isLate(channel, seq))),
      };
    };
    const rest = id === undefined ? [] : [channels.feed(other_id, 'gps')];
    const expected = { channels_seen: rest, exported: false, figures: rest.map(() => 9_001) };
    expect(await seen()).toEqual(expected);
    await divide(store);
    expect(await seen()).toEqual(expected);
  });
});

describe('an erasure on SQLite', () => {
  it.each(erasures)('of %s leaves no trace in the file, its log and its free pages', async (_, id) => {
    await withDirectory(async (dir) => {
      const file = join(dir, 'service.db');
      const database = openSqlite(file);
      const store = sqlStore(database);
      try {
        await fill(store);
        const traces = await tracesOf(database);
        const files = async () => filesUnder(dirname(file), () => true);
        expect(traces.length).toBeGreaterThan(20);
        expect(await foundIn(await files(), traces)).toBeGreaterThan(traces.length / 2);
        await store.eraseHistory({ kit_id, asset_id: id, before_ms: start_ms + hour_ms }, start_ms + hour_ms);
        expect(await foundIn(await files(), traces)).toBe(0);
        expect(await foundIn(await files(), [Buffer.from(kept_word)])).toBe(id === undefined ? 0 : 1);
        expect(await foundIn(await files(), [Buffer.from(newest_word)])).toBe(1);
      } finally {
        await store.close();
      }
    });
  });

  it('is not done while another client reads what was there before, and reports it', async () => {
    await withDirectory(async (dir) => {
      const file = join(dir, 'service.db');
      const database = openSqlite(file);
      const store = sqlStore(database);
      const reader = new Sqlite(file);
      try {
        await fill(store);
        const traces = await tracesOf(database);
        reader.exec('BEGIN');
        reader.prepare('SELECT COUNT(*) FROM history').get();
        const erasure = { kit_id, asset_id: undefined, before_ms: start_ms + hour_ms };
        await expect(store.eraseHistory(erasure, erasure.before_ms)).rejects.toThrow(texts.erasure_is_read);
        reader.exec('COMMIT');
        await store.eraseHistory(erasure, erasure.before_ms);
        expect(await foundIn(await filesUnder(dir, () => true), traces)).toBe(0);
      } finally {
        reader.close();
        await store.close();
      }
    });
  });
});

describe.skipIf(peerMissing('postgres', 'initdb', 'setpriv', 'pg_dump'))('an erasure on PostgreSQL', () => {
  it.each(erasures)(
    'of %s leaves no trace in a dump, and none in the files and the log after the documented statements',
    { tags: 'long', timeout: 60_000 },
    async (_, id) => {
      const server = await startPostgres();
      await server.set('wal_recycle', 'off');
      const database = await openPostgres({ url: server.url, password: server.password });
      const store = sqlStore(database);
      const dump = async (): Promise<Buffer> => {
        const env = { ...process.env, PGPASSWORD: postgres_password };
        const words = ['--dbname', server.url, '--format', 'plain'];
        const { stdout } = await promisify(execFile)(program('pg_dump'), words, {
          env,
          encoding: 'buffer',
          maxBuffer: 2 ** 28,
        });
        return stdout;
      };
      const isLog = (path: string): boolean => path.includes('/pg_wal/');
      const filesWhere = async (isWanted: (path: string) => boolean) => {
        await database.all('CHECKPOINT');
        return filesUnder(server.data_dir, isWanted);
      };
      try {
        await fill(store);
        // The statistics of the planner would hold examples of values.
        await database.all('ANALYZE');
        const traces = await tracesOf(database);
        const inDump = (dumped: Buffer): number =>
          traces.filter((trace) => dumped.includes(trace) || dumped.includes(trace.toString('hex'))).length;
        expect(inDump(await dump())).toBeGreaterThan(traces.length / 2);
        const half = traces.length / 2;
        expect(await foundIn(await filesWhere((path) => !isLog(path)), traces)).toBeGreaterThan(half);
        await store.eraseHistory({ kit_id, asset_id: id, before_ms: start_ms + hour_ms }, start_ms + hour_ms);
        expect(inDump(await dump())).toBe(0);
        expect(await foundIn(await filesWhere(isLog), traces)).toBeGreaterThan(half);
        await database.all(`VACUUM FULL ${erasable_tables.join(', ')}`);
        await database.all('SELECT pg_switch_wal()');
        const files = await filesWhere(() => true);
        expect(await foundIn(files, traces)).toBe(0);
        expect(await foundIn(files, [Buffer.from(kept_word)])).toBe(id === undefined ? 0 : 1);
      } finally {
        await store.close();
        await server.stop();
      }
    },
  );
});
