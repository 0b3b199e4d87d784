/** The flag that keeps V8 from compiling what its threads would share; see decision 0036. */
import { readFile } from 'node:fs/promises';
import { execArgv } from 'node:process';
import { Worker } from 'node:worker_threads';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { source_flags } from '../node-flags.ts';

it('every test runs with the flags for sources', () => {
  expect(execArgv).toEqual(expect.arrayContaining([...source_flags]));
});

it.each(['package.json', 'src/kit-connector.mjs'])('%s starts the program with them', async (file) => {
  const text = await readFile(new URL(`../../${file}`, import.meta.url), 'utf8');
  for (const flag of source_flags) expect(text).toContain(flag);
});

it('threads that strip types may start and end in numbers', async () => {
  const script = new URL('../../src/outbox/protocol.ts', import.meta.url);
  const ends = Array.from({ length: 12 }, async () => once(new Worker(script), 'exit'));
  expect(await Promise.all(ends)).toEqual(ends.map(() => [0]));
});
