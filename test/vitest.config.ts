import { defineConfig } from 'vitest/config';
import { covered_tests } from './covered-rooms.ts';
import { source_flags } from './node-flags.ts';
import { LongFilesFirst } from './order.ts';

const common = { testTimeout: 120_000, hookTimeout: 120_000, execArgv: [...source_flags] };
/** Files of one worker share its process: see `shared-process.ts`. */
const shared = { isolate: false, setupFiles: ['test/shared-process.ts'] };
const drivers = ['test/unit/drivers/**/*.test.ts'];
/** Their peers are processes, threads or network namespaces, which do not know of virtual time. */
const drivers_in_real_time = [
  'clients/clients',
  'gateway/reboot',
  'location/location',
  'mavlink/commands/daemon-killed',
  'mavlink/links/serial',
  'modem/*',
  'onvif/**/*',
  'power/power',
  'speedtest/*',
  'vendorcam/**/*',
  'vendorradio/*',
].map((file) => `test/unit/drivers/${file}.test.ts`);
/**
 * Each of these has a process of its own: the simulator replaces its clocks and randomness for good, the pages have browsers, one
 * counts what a step costs, and one of the store failed twice on a busy machine when it shared a process, for a reason not found yet.
 */
const alone = [
  'test/unit/sim/**/*.test.ts',
  'test/unit/page/**/*.test.ts',
  'test/unit/service/store/**/*.test.ts',
  'test/unit/service/attack-cost.test.ts',
];
/** These measure how long something takes on the wire. */
const measuring = ['test/unit/drivers/links/**/*.test.ts'];
/** Set by `.ci/run`, which runs these with `npm run coverage`. */
const covered_elsewhere = process.env['KIT_CONNECTOR_COVERED'] === '1';

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    globalSetup: ['test/support/run-directory.ts', 'test/support/tell-skipped.ts'],
    sequence: { sequencer: LongFilesFirst },
    // One after the other: what keeps the cores busy must not run beside what only waits.
    projects: [
      {
        test: {
          ...common,
          name: 'system',
          include: ['test/{faults,e2e}/**/*.test.ts', ...alone],
          // With three, two cores were busy for three quarters of the time.
          maxWorkers: 4,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...common,
          ...shared,
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          exclude: [...drivers, ...alone, ...(covered_elsewhere ? covered_tests : [])],
          maxWorkers: 4,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...common,
          name: 'drivers',
          include: drivers,
          exclude: [...measuring, ...drivers_in_real_time],
          setupFiles: ['test/support/virtual-time.ts'],
          maxWorkers: 4,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...common,
          ...shared,
          name: 'drivers-in-real-time',
          include: drivers_in_real_time,
          maxWorkers: 12,
          maxConcurrency: 8,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...common,
          name: 'links',
          include: measuring,
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
