import { defineConfig } from 'vitest/config';
import { source_flags } from './node-flags.ts';

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    execArgv: [...source_flags],
    globalSetup: 'test/support/run-directory.ts',
    include: ['test/faults/**/*.long.ts'],
    // A thousand kills of the daemon take 25 minutes, and longer where others keep the processors busy.
    testTimeout: 3_600_000,
    hookTimeout: 20_000,
    maxWorkers: 1,
  },
});
