/** The list of the interface's statements and the tests that show them cannot drift apart. */
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const dir = fileURLToPath(new URL('../../e2e/interface/', import.meta.url));

const listed = [...readFileSync(`${dir}statements.md`, 'utf8').matchAll(/^- (\d+\.\d+) /gmu)].map(
  ([, n]) => n,
);
/** The numbers with which a title begins. */
const shown = globSync(`${dir}*.ts`)
  .flatMap((file) => [...readFileSync(file, 'utf8').matchAll(/\(\s*'((?:\d+\.\d+,? )+)/gu)])
  .flatMap(([, numbers = '']) => numbers.match(/\d+\.\d+/gu) ?? []);

it('every statement of the interface has one number and a test that bears it', () => {
  expect(new Set(listed).size).toBe(listed.length);
  expect(listed.filter((number) => number === undefined || !shown.includes(number))).toEqual([]);
});

it('every number of a test is that of a statement', () => {
  expect(shown.length).toBeGreaterThan(listed.length);
  expect(shown.filter((number) => !listed.includes(number))).toEqual([]);
});
