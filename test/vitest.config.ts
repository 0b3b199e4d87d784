import { defineConfig } from 'vitest/config';

// oxlint-disable-next-line import/no-default-export -- vitest reads its settings from a default export
export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    globalSetup: 'test/support/run-directory.ts',
    include: ['test/{unit,contract,faults,e2e}/**/*.test.ts'],
    testTimeout: 20_000,
    hookTimeout: 20_000,
    // Most of the time goes into waiting for deadlines of real protocols, so that more files than cores may run at once.
    maxWorkers: 5,
  },
});
