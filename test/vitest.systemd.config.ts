import { defineConfig } from 'vitest/config';
import { source_flags } from './node-flags.ts';

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    execArgv: [...source_flags],
    globalSetup: 'test/support/run-directory.ts',
    include: ['test/systemd/**/*.test.ts'],
    testTimeout: 60_000,
    // The first run makes the root file system of the container.
    hookTimeout: 300_000,
    maxWorkers: 1,
  },
});
