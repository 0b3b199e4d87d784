/** Files for the cloud on the disk of the kit: nothing is lost by a kill or a torn journal, and the books always balance. */
import { createHash } from 'node:crypto';
import { appendFile, readdir, readFile, truncate, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type FileDrop, FileStore } from '../../../../src/kit/files/file-store.ts';
import { texts } from '../../../../src/kit/files/texts.ts';
import { CommandRefused, StorageUnavailable } from '../../../../src/platform/errors.ts';
import { testDirectory } from '../../../support/test-directory.ts';

const about = {
  kind: 'still',
  asset_id: null,
  name: 'gate.jpg',
  content_type: 'image/jpeg',
  at_ms: 1_000,
} as const;

/** A store as a process has it; the next one in the same folder is what runs after a kill. */
async function storeIn(dir: string, { bytes_max = 1_000, free_bytes_min = 0, time = { now_ms: 0 } } = {}) {
  const dropped: [string, FileDrop][] = [];
  const store = new FileStore({
    dir: join(dir, 'files'),
    limits: () => ({ bytes_max, age_max_ms: 1_000, free_bytes_min }),
    now: () => time.now_ms,
    onDropped: ({ name }, reason) => void dropped.push([name, reason]),
    signal: AbortSignal.abort(),
  });
  await store.open();
  return { store, dropped };
}

function balance({ books: { accepted, uploaded, dropped }, files }: FileStore): number {
  const given_up = Object.values(dropped).reduce((sum, count) => sum + count, 0);
  return accepted - uploaded - given_up - files.length;
}

const bytes = (length: number, value = 1): { bytes: Uint8Array } => ({ bytes: Buffer.alloc(length, value) });

async function* pieces(): AsyncIterable<Uint8Array> {
  yield Buffer.from('one ');
  yield Buffer.from('two');
}

describe('The store of files', () => {
  it('keeps bytes, streams and files with their hash, also after a kill', async () => {
    const dir = await testDirectory();
    const { store } = await storeIn(dir);
    const path = join(dir, 'log.bin');
    await writeFile(path, 'three');
    const contents = [{ bytes: Buffer.from('zero') }, { stream: pieces() }, { path }];
    for (const content of contents) await store.add(content, about);
    await expect(readFile(path)).rejects.toThrow('ENOENT');
    const { store: next } = await storeIn(dir);
    expect(next.files).toEqual(store.files);
    for (const [at, text] of ['zero', 'one two', 'three'].entries()) {
      const file = next.files[at];
      expect(file?.sha256).toBe(createHash('sha256').update(text).digest('hex'));
      expect(await readFile(next.pathOf(file?.id ?? ''), 'utf8')).toBe(text);
    }
    expect(balance(next)).toBe(0);
  });

  it('remembers orders, announcements, uploads and what was given up', async () => {
    const dir = await testDirectory();
    const { store } = await storeIn(dir);
    const [sent, ordered, announced] = [
      await store.add(bytes(10), about),
      await store.add(bytes(10), about),
      await store.add(bytes(10), about),
    ];
    await store.mark(ordered.id, 'ordered');
    await store.mark(announced.id, 'announced');
    expect(await store.end(sent.id, 'uploaded')).toBe(true);
    expect(await store.end(sent.id, 'uploaded')).toBe(false);
    for (const each of [store, (await storeIn(dir)).store, (await storeIn(dir)).store]) {
      expect(each.get(ordered.id)?.ordered).toBe(true);
      expect(each.get(announced.id)?.announced).toBe(true);
      expect(each.books).toEqual({ accepted: 3, uploaded: 1, dropped: {} });
      expect(balance(each)).toBe(0);
    }
  });

  it('gives up the oldest for a new one, those that were ordered last', async () => {
    const dir = await testDirectory();
    const { store, dropped } = await storeIn(dir);
    const [first] = [await store.add(bytes(400), { ...about, name: 'first' })];
    await store.add(bytes(400), { ...about, name: 'second' });
    await store.mark(first.id, 'ordered');
    await store.add(bytes(400), { ...about, name: 'third' });
    expect(store.files.map(({ name }) => name)).toEqual(['first', 'third']);
    expect(dropped).toEqual([['second', 'evicted']]);
    expect(store.bytes).toBe(800);
    expect(balance(store)).toBe(0);
  });

  it.each([
    ['more than all files may have', { bytes_max: 1_000 }, bytes(1_001), texts.file_too_large(1_000)],
    ['nothing', {}, { bytes: Buffer.alloc(0) }, texts.file_empty],
  ])('refuses a file that has %s, and keeps the others', async (_, limits, content, reason) => {
    const dir = await testDirectory();
    const { store } = await storeIn(dir, limits);
    await store.add(bytes(10), about);
    await expect(store.add(content, about)).rejects.toThrow(new CommandRefused(reason));
    expect(store.files).toHaveLength(1);
    expect(await readdir(join(dir, 'files'))).toHaveLength(2);
    expect(balance(store)).toBe(0);
  });

  it('leaves a file where it is while the disk has no room', async () => {
    const dir = await testDirectory();
    const { store } = await storeIn(dir, { free_bytes_min: Number.MAX_SAFE_INTEGER });
    const path = join(dir, 'log.bin');
    await writeFile(path, 'flight');
    await expect(store.add({ path }, about)).rejects.toThrow(StorageUnavailable);
    expect(await readFile(path, 'utf8')).toBe('flight');
    expect(store.files).toEqual([]);
  });

  it('survives a journal that a power cut has torn at any byte', async () => {
    const dir = await testDirectory();
    const { store } = await storeIn(dir);
    for (const name of ['a', 'b', 'c']) await store.add(bytes(5), { ...about, name });
    await store.end(store.files[0]?.id ?? '', 'uploaded');
    const journal = join(dir, 'files', 'journal');
    const whole = await readFile(journal);
    for (let length = whole.length; length > whole.length - 60; length -= 7) {
      await writeFile(journal, whole.subarray(0, length));
      const { store: next } = await storeIn(dir);
      expect(next.files.map(({ name }) => name)).toEqual(['b', 'c']);
      expect(balance(next)).toBe(0);
      expect(await next.add(bytes(5), about)).toMatchObject({ bytes: 5 });
      await next.end(next.files.at(-1)?.id ?? '', 'unwanted');
    }
  });

  it('gives up a file whose content is missing or cut, and deletes what no line names', async () => {
    const dir = await testDirectory();
    const { store } = await storeIn(dir);
    const [gone, cut] = [
      await store.add(bytes(5), { ...about, name: 'gone' }),
      await store.add(bytes(5), { ...about, name: 'cut' }),
    ];
    await unlink(store.pathOf(gone.id));
    await truncate(store.pathOf(cut.id), 2);
    await appendFile(join(dir, 'files', 'orphan.part'), 'half');
    const { store: next, dropped } = await storeIn(dir);
    expect(dropped).toEqual([
      ['gone', 'lost'],
      ['cut', 'lost'],
    ]);
    expect(await readdir(join(dir, 'files'))).toEqual(['journal']);
    expect(balance(next)).toBe(0);
  });
});
