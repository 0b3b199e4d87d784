/** Files are read up to a limit, each of them. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { glob, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { FileRefused } from '../../../src/platform/errors.ts';
import {
  readBytesUpTo,
  readTextUpTo,
  readTextUpToSync,
  readTypedUpTo,
} from '../../../src/platform/bounded-file.ts';
import { texts } from '../../../src/platform/texts.ts';
import { testDirectory } from '../../support/test-directory.ts';

const both = {
  'at once': async (file: string, bytes_max: number) => readTextUpToSync(file, bytes_max),
  'in the background': readTextUpTo,
};

it.each(Object.entries(both))('a file is read %s up to its limit and no further', async (_, read) => {
  const dir = await testDirectory();
  const file = join(dir, 'file');
  for (const length of [0, 1, 4_095, 4_096, 4_097, 20_000]) {
    const text = Array.from({ length }, (__, at) => String(at % 10)).join('');
    await writeFile(file, text);
    expect(await read(file, length)).toBe(text);
    expect(await read(file, 1_000_000)).toBe(text);
    if (length === 0) continue;
    await expect(read(file, length - 1)).rejects.toThrow(new FileRefused(texts.larger_than(length - 1)));
  }
});

it.each(Object.entries(both))('a file of the kernel is read %s, which names no size', async (_, read) => {
  expect(await read('/proc/self/status', 100_000)).toMatch(/^CapBnd:/mu);
});

it.each(Object.entries(both))('what is no file is refused %s, without waiting', async (_, read) => {
  const dir = await testDirectory();
  await mkdir(join(dir, 'folder'));
  execFileSync('mkfifo', [join(dir, 'pipe')]);
  for (const path of ['/dev/zero', join(dir, 'folder'), join(dir, 'pipe')]) {
    await expect(read(path, 100)).rejects.toThrow(new FileRefused(texts.no_file));
  }
  await expect(read(join(dir, 'nothing'), 100)).rejects.toMatchObject({ code: 'ENOENT' });
});

it('a pipe is read where a person typed its path, up to the limit', async () => {
  const dir = await testDirectory();
  const pipe = join(dir, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const [text] = await Promise.all([readTypedUpTo(pipe, 100), writeFile(pipe, 'secret\n')]);
  expect(text).toBe('secret\n');
  await expect(readTypedUpTo('/dev/zero', 100)).rejects.toThrow(new FileRefused(texts.larger_than(100)));
  await expect(readTypedUpTo(join(dir, 'nothing'), 100)).rejects.toMatchObject({ code: 'ENOENT' });
});

it('two files that are read at the same time do not share their bytes', async () => {
  const dir = await testDirectory();
  await writeFile(join(dir, 'a'), 'a'.repeat(3_000));
  await writeFile(join(dir, 'b'), 'b'.repeat(3_000));
  const [a, b] = await Promise.all(['a', 'b'].map(async (name) => readBytesUpTo(join(dir, name), 5_000)));
  expect([a?.toString(), b?.toString()]).toEqual(['a'.repeat(3_000), 'b'.repeat(3_000)]);
});

/** These read what is part of the program, as it was packed. */
const own_files: ReadonlySet<string> = new Set([
  'src/kit/geo/cities.ts',
  'src/cli/version.ts',
  'src/cloud/http/page/help.ts',
  'src/cloud/http/page/page-files.ts',
]);

/** These run where the program is built. */
const build_tools: ReadonlySet<string> = new Set([
  'src/tools/circles.ts',
  'src/tools/docs.ts',
  'src/tools/pack-cities.ts',
  'src/tools/pack-world.ts',
]);

it('no file is read without a limit', async () => {
  const root = new URL('../../../', import.meta.url).pathname;
  const found: string[] = [];
  for await (const file of glob('{src,drivers}/**/*.ts', { cwd: root })) {
    if (/\breadFile(?:Sync)?\(|\.readFile\(/u.test(readFileSync(join(root, file), 'utf8'))) found.push(file);
  }
  expect(found.filter((file) => !own_files.has(file) && !build_tools.has(file))).toEqual([]);
});
