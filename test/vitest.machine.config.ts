import { defineConfig } from 'vitest/config';
import { source_flags } from './node-flags.ts';

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    execArgv: [...source_flags],
    include: ['test/machine/**/*.test.ts'],
    // An emulated processor is twenty times slower than a real one, and the first run makes the file system of the machine with it.
    testTimeout: 7_200_000,
    hookTimeout: 7_200_000,
    maxWorkers: 1,
  },
});
