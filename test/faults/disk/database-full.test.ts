/** The disk of the service's database is full: what was acknowledged is stored, the rest waits, and it heals by itself. */
import { chownSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packBatch } from '../../../src/contract/batch/pack.ts';
import { channels, upTopic } from '../../../src/contract/topics.ts';
import { StorageUnavailable } from '../../../src/platform/errors.ts';
import { history_classes } from '../../../src/cloud/history/message.ts';
import { newBudget, readHistory } from '../../../src/cloud/history/reading/reader.ts';
import { Ingest } from '../../../src/cloud/ingest/ingest.ts';
import { readMessage, type Reception } from '../../../src/cloud/read-message.ts';
import { Changes } from '../../../src/cloud/changes.ts';
import { openStore } from '../../../src/cloud/open-store.ts';
import { asset_id, kit_id } from '../../support/contract-samples.ts';
import { diskMissing, fillUp, withTmpfs } from '../../support/disk/disks.ts';
import { eventually } from '../../support/eventually.ts';
import { peerMissing } from '../../support/peers.ts';
import { seededRandom } from '../../support/random.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { startPostgres } from '../../support/database/postgres.ts';
import { run } from '../../support/temporary.ts';
import type { Store } from '../../../src/cloud/store/sql-store.ts';

const start_ms = Date.UTC(2026, 10, 21, 10);
const batch_messages = 200;
const disk_mb = 48;
const heal_ms = 20_000;

/** Batches that no compression makes small. */
function* batches(): Generator<Reception, never> {
  const random = seededRandom(1);
  for (let seq = 1; ;) {
    const items = Array.from({ length: batch_messages }, () => ({
      channel: seq % 10 === 0 ? channels.event(asset_id, 'motion') : channels.feed(asset_id, 'gps'),
      epoch: 17,
      seq,
      time_ms: start_ms + 1_000 * seq++,
      data: JSON.stringify({ note: random.bytes(300).toString('base64') }),
    }));
    const reception = readMessage(upTopic(kit_id, channels.batch), packBatch(items, { historical: true }));
    if (!reception) throw new Error('not a batch');
    yield reception;
  }
}

async function seqsIn(store: Store): Promise<readonly number[]> {
  const stretch = {
    kit_id,
    classes: history_classes,
    from_ms: 0,
    to_ms: 2 * start_ms,
    order: 'asc',
  } as const;
  const seqs: number[] = [];
  for await (const { seq } of readHistory(store, stretch, { ...newBudget(), until_ms: Infinity }))
    seqs.push(seq);
  return seqs;
}

interface Account {
  /** Messages that were not acknowledged while the disk was full. */
  readonly waited: number;
  /** Acknowledged, and not in the history while the disk was full. */
  readonly missing_while_full: readonly number[];
  /** Errors other than that the database is not available. */
  readonly strange: readonly unknown[];
  readonly unready: string | undefined;
  readonly given_up: readonly string[];
  /** Everything is in the history in the end, in order. */
  readonly isEachOnce: boolean;
}

const healed = { missing_while_full: [], strange: [], unready: undefined, given_up: [], isEachOnce: true };

async function compactAll(store: Store): Promise<void> {
  while ((await store.compactHistory(start_ms, true)) > 0);
}

/** Fills the disk under a service that stores, and frees it again. */
async function play(store: Store, disk: string): Promise<Account> {
  const ends = new AbortController();
  const log = recordingLog();
  const ingest = new Ingest({
    store,
    changes: new Changes(),
    log,
    group_ms: 0,
    onCommitted: () => undefined,
    signal: ends.signal,
  });
  const acknowledged = new Set<number>();
  const source = batches();
  const taken: Promise<void>[] = [];
  const take = (): void => {
    const reception = source.next().value;
    const store = async (): Promise<void> => {
      await ingest.take(reception);
      for (const { seq } of reception.messages) acknowledged.add(seq);
    };
    taken.push(store());
  };
  const missing = async (): Promise<readonly number[]> => {
    const promised = [...acknowledged];
    const stored = new Set(await seqsIn(store));
    return promised.filter((seq) => !stored.has(seq));
  };
  for (let n = 0; n < 5; n += 1) take();
  await Promise.all(taken);
  await store.compactHistory(start_ms, true);
  const hog = fillUp(disk);
  // The database may have room in its own files for some more.
  await eventually(
    'the database refuses',
    () => {
      take();
      return ingest.unready !== undefined;
    },
    heal_ms,
  );
  const waited = taken.length * batch_messages - acknowledged.size;
  // Dividing needs room too: it fails as a whole, or finds enough.
  const strange: unknown[] = [];
  await compactAll(store).catch((error: unknown) => {
    if (!(error instanceof StorageUnavailable)) strange.push(error);
  });
  const missing_while_full = await missing();

  rmSync(hog);
  take();
  await Promise.all(taken);
  await compactAll(store);
  const seqs = await seqsIn(store);
  ends.abort();
  return {
    waited,
    missing_while_full,
    strange,
    unready: ingest.unready,
    given_up: log.at('error').filter((sentence) => sentence.includes('discarding')),
    isEachOnce:
      seqs.length === taken.length * batch_messages && seqs.every((seq, index) => seq === index + 1),
  };
}

describe.skipIf(diskMissing())('a database whose disk is full', () => {
  it('acknowledges nothing that SQLite has not stored, and heals', async () => {
    await withTmpfs(disk_mb, async (dir) => {
      const { store } = await openStore({ kind: 'sqlite', file: join(dir, 'service.db') });
      try {
        const { waited, ...account } = await play(store, dir);
        expect(waited).toBeGreaterThan(0);
        expect(account).toEqual(healed);
      } finally {
        await store.close();
      }
    });
  });

  it('is named with the remedy where SQLite opens or makes its file, and opens once there is room', async () => {
    await withTmpfs(1, async (dir) => {
      const file = join(dir, 'service.db');
      const open = async () => (await openStore({ kind: 'sqlite', file })).store;
      const hog = fillUp(dir);
      await expect(open()).rejects.toThrow(/disk full.*free some space/u);
      rmSync(hog);
      await (await open()).close();
      fillUp(dir);
      await expect(open()).rejects.toThrow(/disk full.*free some space/u);
    });
  });

  it.skipIf(peerMissing('postgres', 'initdb', 'setpriv'))(
    'acknowledges nothing that PostgreSQL has not stored, and heals',
    { tags: 'long', timeout: 120_000 },
    async () => {
      await withTmpfs(disk_mb, async (dir) => {
        const server = await startPostgres();
        try {
          const space = join(dir, 'space');
          mkdirSync(space, { mode: 0o700 });
          const [uid, gid] = await Promise.all([run('id', '-u', 'postgres'), run('id', '-g', 'postgres')]);
          chownSync(space, Number(uid), Number(gid));
          const url = await server.newDatabase('kits', { tablespace_dir: space });
          const { store } = await openStore({ kind: 'postgres', url, password: server.password });
          try {
            const { waited, ...account } = await play(store, dir);
            expect(waited).toBeGreaterThan(0);
            expect(account).toEqual(healed);
          } finally {
            await store.close();
          }
        } finally {
          await server.stop();
        }
      });
    },
  );
});
