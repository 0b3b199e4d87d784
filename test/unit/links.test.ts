/** Every relative link of the manuals leads to a file that is there. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
const pages = execFileSync('git', ['ls-files', '*.md'], { cwd: root, encoding: 'utf8' }).trim().split('\n');

it.each(pages)('the links of %s lead to files', (page) => {
  const text = readFileSync(join(root, page), 'utf8').replaceAll(/```[^]*?```|`[^`]*`/gu, '');
  const targets = [...text.matchAll(/\]\(([^)#:\s]+)(?:#[^)]*)?\)/gu)].map(([, target = '']) => target);
  expect(targets.filter((target) => !existsSync(join(root, dirname(page), target)))).toEqual([]);
});
