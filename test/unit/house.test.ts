/** What is written of the house is complete and true: libraries, decisions, rooms, walks, folders. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  barrels,
  collections,
  fullFolders,
  keptPieces,
  oddTextIds,
  strayTests,
  type Tree,
  untidyDrivers,
  wrongPlaces,
} from '../support/house/house-rules.ts';

const root = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

/** The files of the repository that exist, with the text of those that the rules read. */
function readTree(): Tree {
  const list = ['ls-files', '--cached', '--others', '--exclude-standard'];
  const paths = execFileSync('git', list, { cwd: root, encoding: 'utf8' }).trim().split('\n');
  const present = paths.filter((path) => existsSync(join(root, path)));
  return new Map(
    present.map((path) => [path, /^(src|drivers)\/.*\.([tj]s|mjs)$/u.test(path) ? read(path) : '']),
  );
}

const tree = readTree();
const decisions = [...tree.keys()].filter((path) => /^src\/decisions\/\w+\/\d{4}-.*\.md$/u.test(path));

it('the decision about libraries names each that is installed, but types and Node itself', () => {
  const names = z.record(z.string(), z.string());
  const { dependencies, devDependencies } = z
    .object({ dependencies: names, devDependencies: names })
    .parse(JSON.parse(read('package.json')));
  const words = new Set(read('src/decisions/process/0002-libraries.md').match(/[@\w/-]+/gu));
  const missing = Object.keys({ ...dependencies, ...devDependencies }).filter(
    (name) => !name.startsWith('@types/') && !words.has(name),
  );
  expect(missing).toEqual([]);
});

describe('The decisions', () => {
  const index = read('src/decisions/README.md');
  const rowOf = (path: string): string | undefined =>
    index.split('\n').find((line) => line.includes(`(${path.replace('src/decisions/', '')})`));

  it('are numbered without a gap or a double, over all folders', () => {
    const numbers = decisions.map((path) => Number(basename(path).slice(0, 4))).toSorted((a, b) => a - b);
    expect(numbers).toEqual(Array.from({ length: decisions.length }, (_, each) => each + 1));
    expect(decisions.length).toBeGreaterThan(20);
  });

  it('are all in the index', () => {
    for (const path of decisions) expect(rowOf(path)).toContain(`[${basename(path).slice(0, 4)}]`);
  });

  it('have a date and a status, which the index repeats', () => {
    for (const path of decisions) {
      const status =
        /^Status: (accepted|superseded by \d{4}) (\d{4}-\d\d-\d\d)(, amended \d{4}-\d\d-\d\d)?\.$/mu.exec(
          read(path),
        );
      expect({ path, hasStatus: status !== null }).toEqual({ path, hasStatus: true });
      expect(rowOf(path)).toMatch(
        new RegExp(`\\| ${status?.[2]} \\| ${status?.[1]}${status?.[3] ?? ''} \\|$`, 'u'),
      );
    }
  });
});

describe('src/README.md', () => {
  const page = read('src/README.md');

  it('has a row for each folder and each file of src', () => {
    const table = page.slice(page.indexOf('<!-- rooms -->'), page.indexOf('<!-- end of rooms -->'));
    const named = new Set([...table.matchAll(/`([^`]+)`/gu)].map(([, name]) => name));
    const entries = new Set([...tree.keys()].flatMap((path) => /^src\/([^/]+\/?)/u.exec(path)?.[1] ?? []));
    const unnamed = [...entries].filter((entry) => !named.has(entry));
    expect(unnamed.toSorted()).toEqual(['README.md', 'decisions/']);
  });

  it('names only files, folders and functions that exist', () => {
    expect(wrongPlaces(page, tree)).toEqual([]);
  });

  it('names at least a file and a function for each step of its two walks', () => {
    const walks = page.slice(page.indexOf('## Where a message goes'), page.indexOf('## Threads'));
    const steps = walks.split(/^\d\. /mu).slice(1);
    expect(steps).toHaveLength(12);
    for (const step of steps)
      expect(step).toMatch(/`[\w.]+`\s+(of\s+the\s+asset's\s+sink\s+)?\(`[\w./-]+\.ts`\)/u);
  });
});

/** Each rule: what the sources break of it, and a small tree that breaks it once. */
const rules: readonly (readonly [string, (tree: Tree) => string[], Tree, string])[] = [
  [
    'holds about 20 files in a folder',
    fullFolders,
    new Map(Array.from({ length: 22 }, (_, each) => [`src/hub/part-${each}.ts`, ''])),
    'src/hub: 22 files',
  ],
  [
    'has the named files at the root of each driver',
    untidyDrivers,
    new Map([
      ['drivers/dish/dish.ts', ''],
      ['drivers/dish/README.md', ''],
    ]),
    'drivers/dish/options.ts',
  ],
  [
    'has folders in a driver of more than 12 files',
    untidyDrivers,
    new Map(
      [
        'dish.ts',
        'options.ts',
        'README.md',
        ...Array.from({ length: 10 }, (_, each) => `part-${each}.ts`),
      ].map((name) => [`drivers/dish/${name}`, '']),
    ),
    'drivers/dish: 13 files',
  ],
  [
    'has unit tests only where a subject stands at the same place',
    strayTests,
    new Map([
      ['src/hub/hub.ts', ''],
      ['test/unit/hub/hub.test.ts', ''],
      ['test/unit/hab/hub.test.ts', ''],
    ]),
    'test/unit/hab',
  ],
  [
    'has no barrels',
    barrels,
    new Map([['src/hub/index.ts', `export * from './hub.ts';\n`]]),
    'src/hub/index.ts',
  ],
  [
    'has no collections of this and that',
    collections,
    new Map([['src/hub/utils.ts', '']]),
    'src/hub/utils.ts',
  ],
  [
    'gathers bodies as bytes, not as pieces',
    keptPieces,
    new Map([['src/hub/body.ts', 'const body = Buffer.concat(chunks);']]),
    'src/hub/body.ts',
  ],
  [
    'has ids of sentences in snake_case',
    oddTextIds,
    new Map([['src/hub/texts.ts', `export const texts = {\n  feedInvalid: 'invalid feed',\n} as const;\n`]]),
    'src/hub/texts.ts: feedInvalid',
  ],
];

describe('The source tree', () => {
  it.each(rules)('%s', (_, broken) => {
    expect(broken(tree)).toEqual([]);
  });

  it.each(rules)('is rejected by the rule that it %s', (_, broken, sample, fault) => {
    expect(broken(sample)).toEqual([fault]);
  });

  it('is rejected by the rule about places when a page names a file or a function that is gone', () => {
    const page =
      '`hub/gone.ts`, `Pacer.gone` (`hub/rate.ts`), `gone` (`hub/rate.ts`), `Pacer.open`\n(`hub/rate.ts`), `gone/`';
    const small = new Map([['src/hub/rate.ts', 'export class Pacer {\n  open(feed: string): void {}\n}\n']]);
    expect(wrongPlaces(page, small)).toEqual([
      'hub/gone.ts',
      'gone/',
      'Pacer.gone in hub/rate.ts',
      'gone in hub/rate.ts',
    ]);
  });
});
