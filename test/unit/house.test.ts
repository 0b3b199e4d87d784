/** What is written of the house is complete: libraries, decisions and rooms. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { z } from 'zod';

const place = (path: string): URL => new URL(`../../${path}`, import.meta.url);
const read = (path: string): string => readFileSync(place(path), 'utf8');

it('the decision about libraries names each that is installed, but types and Node itself', () => {
  const names = z.record(z.string(), z.string());
  const { dependencies, devDependencies } = z
    .object({ dependencies: names, devDependencies: names })
    .parse(JSON.parse(read('package.json')));
  const words = new Set(read('src/decisions/0002-libraries.md').match(/[@\w/-]+/gu));
  const missing = Object.keys({ ...dependencies, ...devDependencies }).filter(
    (name) => !name.startsWith('@types/') && !words.has(name),
  );
  expect(missing).toEqual([]);
});

it('the index of the decisions names each of them', () => {
  const index = read('src/decisions/README.md');
  const files = readdirSync(place('src/decisions')).filter((file) => /^\d{4}/u.test(file));
  expect(files.length).toBeGreaterThan(0);
  for (const file of files) expect(index).toContain(`[${file.slice(0, 4)}](${file})`);
});

it('each decision has a date and a status, and the index repeats both', () => {
  const index = read('src/decisions/README.md');
  for (const file of readdirSync(place('src/decisions')).filter((name) => /^\d{4}/u.test(name))) {
    const status =
      /^Status: (accepted|superseded by \d{4}) (\d{4}-\d\d-\d\d)(, amended \d{4}-\d\d-\d\d)?\.$/mu.exec(
        read(`src/decisions/${file}`),
      );
    expect({ file, hasStatus: status !== null }).toEqual({ file, hasStatus: true });
    const row = index.split('\n').find((line) => line.includes(`(${file})`));
    expect(row).toMatch(new RegExp(`\\| ${status?.[2]} \\| ${status?.[1]}${status?.[3] ?? ''} \\|$`, 'u'));
  }
});

it('the table of rooms names each folder of src', () => {
  const rooms = read('src/README.md');
  const folders = readdirSync(place('src'), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  // What a decision holds is told at the end of the page, not in the table.
  for (const { name } of folders) expect(rooms).toContain(`\`${name}/`);
});
