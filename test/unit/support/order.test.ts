import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { long_files, LongFilesFirst, rank } from '../../order.ts';

const root = join(import.meta.dirname, '../../..');

describe('The order of the files', () => {
  it('names files that exist, each once', () => {
    expect(long_files.filter((file) => !existsSync(join(root, file)))).toEqual([]);
    expect(new Set(long_files).size).toBe(long_files.length);
  });

  it('puts a long file before one that it does not name, and keeps the order of the others', async () => {
    const [first, second] = long_files;
    const files = ['test/unit/geo/b.test.ts', second, 'test/unit/geo/a.test.ts', first].map((file) =>
      specification(file),
    );
    const context = { config: { root }, cache: { getTestSpecificationResult: () => undefined } };
    const sorted = await new LongFilesFirst(context as never).sort(files as never);
    expect(sorted.map(({ moduleId }) => moduleId.slice(root.length + 1))).toEqual([
      first,
      second,
      'test/unit/geo/b.test.ts',
      'test/unit/geo/a.test.ts',
    ]);
    expect(rank('test/unit/geo/a.test.ts')).toBe(long_files.length);
  });
});

function specification(file: string): object {
  const project = { name: 'system', config: { isolate: true, sequence: { groupOrder: 0 } } };
  return { moduleId: join(root, file), project };
}
