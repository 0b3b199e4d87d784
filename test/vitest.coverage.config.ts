/**
 * `npm run coverage`: the rooms that decide about messages and tasks, by their unit tests alone. What end-to-end tests reach in
 * other processes would not be counted, and counting slows down tests that measure time: so neither takes part.
 */
import { defineConfig } from 'vitest/config';
import { covered_rooms, covered_tests } from './covered-rooms.ts';
import { source_flags } from './node-flags.ts';
import { LongFilesFirst } from './order.ts';

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    execArgv: [...source_flags],
    globalSetup: ['test/support/run-directory.ts'],
    include: covered_tests,
    // Files of one worker share its process: see `shared-process.ts`.
    isolate: false,
    setupFiles: ['test/shared-process.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    maxWorkers: 4,
    sequence: { sequencer: LongFilesFirst },
    coverage: {
      enabled: true,
      provider: 'v8',
      include: covered_rooms.map((room) => `src/${room}/**/*.ts`),
      reporter: ['text-summary'],
      // Some points below what was reached when it was set: a new part without tests falls below it.
      thresholds: { lines: 90, statements: 88, functions: 88, branches: 82 },
    },
  },
});
