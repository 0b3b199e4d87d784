/** The check that folders of a room import each other in one direction, on small rooms with and without a circle. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { circlesIn } from '../../../src/tools/circles.ts';
import { withDirectory } from '../../support/temporary.ts';

/** The circles of the room `src/room` with these files. */
async function circlesOf(files: Readonly<Record<string, string>>): Promise<readonly string[]> {
  return withDirectory(async (root) => {
    for (const [name, text] of Object.entries(files)) {
      const file = join(root, 'src/room', name);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, text);
    }
    return circlesIn(root, 'src/room');
  });
}

describe('The check for import circles', () => {
  it('accepts a file beside sub-folders that they import, and one that imports them', async () => {
    const circles = await circlesOf({
      'index.ts': `import { a } from './one/a.ts';\nimport { b } from './two/b.ts';\nimport '../other/c.ts';\n`,
      'one/a.ts': `import { texts } from '../texts.ts';\nimport { b } from '../two/b.ts';\nimport { z } from 'zod';\n`,
      'two/b.ts': `import { texts } from '../texts.ts';\nimport { c } from './c.ts';\n`,
      'two/c.ts': '',
      'texts.ts': '',
    });
    expect(circles).toEqual([]);
  });

  it('finds two sub-folders that import each other by different files', async () => {
    const circles = await circlesOf({
      'one/a.ts': `import { b } from '../two/b.ts';\n`,
      'one/c.ts': '',
      'two/b.ts': '',
      'two/d.ts': `import { c } from '../one/c.ts';\n`,
    });
    expect(circles).toEqual(['src/room: one > two > one']);
  });

  it('finds a circle of several files in a nested folder, and leaves out what only leads to it', async () => {
    const circles = await circlesOf({
      'main.ts': `import { a } from './deep/er/a.ts';\n`,
      'deep/er/start.ts': `import { a } from './a.ts';\n`,
      'deep/er/a.ts': `import { b } from './b.ts';\n`,
      'deep/er/b.ts': `import { c } from './c.ts';\n`,
      'deep/er/c.ts': `import { a } from './a.ts';\n`,
    });
    expect(circles).toEqual([expect.stringMatching(/^src\/room\/deep\/er: (?:[abc]\.ts(?: > |$)){4}$/u)]);
  });

  it.each([
    ['a type', `import type { B } from './b/b.ts';`],
    ['a list of several lines', `import {\n  b,\n  c,\n} from './b/b.ts';`],
    ['an export', `export { b } from './b/b.ts';`],
    ['a module without names', `import './b/b.ts';`],
    ['a module when it is needed', `  const { b } = await import('./b/b.ts');`],
  ])('counts the import of %s', async (_what, line) => {
    const circles = await circlesOf({ 'a.ts': `${line}\n`, 'b/b.ts': `import { a } from '../a.ts';\n` });
    expect(circles).toHaveLength(1);
  });
});
