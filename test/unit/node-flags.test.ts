/** The flag that keeps V8 from compiling what its threads would share; see decision 0036. */
import { execArgv } from 'node:process';
import { Worker } from 'node:worker_threads';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { source_flags } from '../node-flags.ts';

it('every test runs with the flags for sources', () => {
  expect(execArgv).toEqual(expect.arrayContaining([...source_flags]));
});

it('threads that strip types may start and end in numbers', async () => {
  const script = new URL('../../src/kit/outbox/protocol.ts', import.meta.url);
  const ends = Array.from({ length: 12 }, async () => once(new Worker(script), 'exit'));
  expect(await Promise.all(ends)).toEqual(ends.map(() => [0]));
});
