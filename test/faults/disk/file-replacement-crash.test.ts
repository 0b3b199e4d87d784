/** A crash at every step of moving a buffer file aside: the log of the old file must never reach the new one. */
import { copyFileSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openStore } from '../../../src/kit/outbox/store/store.ts';
import { rowId } from '../../../src/kit/outbox/row.ts';
import { storeOptions, work } from '../../support/disk/store-lab.ts';

const old_rows = 40;
const saved_rows = 500;
let dir: string;
let file: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kit-connector-crash-'));
  ({ file } = storeOptions(dir));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function fill(path: string, rows_total: number, text: string): ReturnType<typeof openStore>['store'] {
  const { store, opened } = openStore({ ...storeOptions(dir), file: path });
  const body = JSON.stringify({ text, pad: 'x'.repeat(900) });
  const rows = Array.from({ length: rows_total }, (_, index) => {
    const id = rowId({ epoch: opened.epoch, seq: index + text.length * 1_000 });
    return { id, lane: 'alarm', channel: 'event/a/motion', time_ms: 1, mono_ms: null, body } as const;
  });
  store.commit(work({ rows }));
  return store;
}

/** Leaves a killed daemon's file with its log, and a finished new file beside it. */
function beforeTheRenames(): void {
  const killed = fill(`${file}.living`, old_rows, 'old');
  for (const part of ['', '-wal', '-shm']) copyFileSync(`${file}.living${part}`, file + part);
  killed.close();
  fill(`${file}.new`, saved_rows, 'saved').close();
  for (const name of readdirSync(dir)) if (/living|reserve|epoch/u.test(name)) rmSync(join(dir, name));
}

const steps: readonly (readonly [string, () => void])[] = [
  ['the file was moved aside', () => renameSync(file, `${file}.damaged-1`)],
  ['its log followed', () => renameSync(`${file}-wal`, `${file}.damaged-1-wal`)],
  ['the index of its log was removed', () => rmSync(`${file}-shm`)],
  ['the new file took its place', () => renameSync(`${file}.new`, file)],
];

describe('a crash while a finished file takes the place of a damaged one', () => {
  test.each(steps.map(([name], index) => [name, index] as const))(
    'after %s keeps every saved row',
    (_, index) => {
      beforeTheRenames();
      for (const [, step] of steps.slice(0, index + 1)) step();
      const { store, opened } = openStore(storeOptions(dir));
      expect(opened).toMatchObject({ salvage: undefined, depth: { alarm: { rows: saved_rows } } });
      const { rows } = store.take({ lane: 'alarm', form: 'rows', rows_max: 9_999, bytes_max: 1e9 });
      expect(rows).toHaveLength(saved_rows);
      expect(rows.filter(({ body }) => body.includes('"old"'))).toEqual([]);
      store.close();
      expect(existsSync(`${file}.damaged-1-wal`)).toBe(true);
    },
  );

  test('before the first step uses the old file with its log', () => {
    beforeTheRenames();
    const { store, opened } = openStore(storeOptions(dir));
    expect(opened.depth.alarm.rows).toBe(old_rows);
    store.close();
  });
});

test('a crash after a file of another release was moved aside leaves its log with it, and begins a new file', () => {
  beforeTheRenames();
  rmSync(`${file}.new`);
  renameSync(file, `${file}.too-new-3`);
  const { store, opened } = openStore(storeOptions(dir));
  expect(opened.depth.alarm.rows).toBe(0);
  expect(existsSync(`${file}.too-new-3-wal`)).toBe(true);
  store.close();
});
