/**
 * All tests, in projects by what they need. `npm test` runs those whose name does not begin with `long`, as `.ci/run` does, without
 * the tests that have the tag `long`; `npm run test:long` runs the others: what takes minutes, measures time on the wire or needs
 * more servers.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { defineConfig } from 'vitest/config';
import { source_flags } from './node-flags.ts';

const minute_ms = 60_000;
const common = { testTimeout: 2 * minute_ms, hookTimeout: 2 * minute_ms, execArgv: [...source_flags] };
/** Files of one worker share its process: see `shared-process.ts`. */
const shared = { isolate: false, setupFiles: ['test/shared-process.ts'] };

const e2e = 'test/{e2e,faults,sim}/**/*.test.ts';
/**
 * Each of these has a process of its own: the simulator replaces its clocks and randomness for good, the pages have browsers, and
 * these of the store end processes and threads of theirs.
 */
const alone = [
  'test/unit/sim/**/*.test.ts',
  'test/sim/**/*.test.ts',
  'test/e2e/{console,interface}/**/*.test.ts',
  'test/unit/console/page.test.ts',
  'test/unit/cloud/store/{schema-fence,thread-store}.test.ts',
];
const drivers = 'test/unit/drivers/**/*.test.ts';
/** Their peers are processes or threads, which do not know of virtual time. */
const drivers_in_real_time = [
  'clients/clients',
  'gateway/reboot',
  'links/**/*',
  'location/location',
  'mavlink/links/serial',
  'modem/{bus,cellular,hostile,modem,reset}',
  'power/power',
  'speedtest/buffers',
].map((file) => `test/unit/drivers/${file}.test.ts`);
/**
 * The daemon and the service as processes, the command line, other browsers and brokers, databases that fail over, links that are
 * measured, each screen and each route of the kernel, what an attack costs, the bundle and the fuzzer.
 */
const long = [
  'test/**/*.long.test.ts',
  'test/e2e/{brokers,command-line,daemon,service}/**/*.test.ts',
  'test/e2e/cloud/down.test.ts',
  'test/e2e/console/{package,fleet,history,keyboard,plain-map}.test.ts',
  'test/e2e/video.test.ts',
  'test/faults/broker/broker-hangs-up.test.ts',
  'test/unit/cli/process.test.ts',
  'test/unit/cloud/attack-cost.test.ts',
  'test/unit/console/{circumstances,sleep,video}.test.ts',
  'test/unit/drivers/mavlink/commands/daemon-killed.test.ts',
  'test/unit/drivers/vendorradio/snmp.test.ts',
  'test/unit/fuzz/fuzz.test.ts',
  'test/unit/package/bundle.test.ts',
  'test/unit/sim/{play,stories}.test.ts',
  'test/unit/drivers/links/{two-wans,families-lab,kernel-choice,checks/checks-lab,probe/prober-lab}.test.ts',
  'test/unit/drivers/speedtest/two-wans.test.ts',
  'test/unit/systemd/{completion,interrupted-upgrade}.test.ts',
];

/**
 * Those that keep a core busy (browsers, the interface) are spread among those that wait for timers and peers, the longest first: side
 * by side they would starve each other, and at the end they would leave the other workers idle.
 */
const longest = ['e2e/interface/interface.test.ts', 'console/page.test.ts', 'console/screens.test.ts'];
const waiting_between = 40;
class Spread extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ project, moduleId }: TestSpecification): number => {
      const at = longest.findIndex((name) => moduleId.endsWith(name));
      if (at >= 0) return at - longest.length;
      return project.name === 'e2e' ? 0 : 1;
    };
    const sorted = (await super.sort(files)).toSorted(
      (a, b) => rank(a) - rank(b) || a.project.name.localeCompare(b.project.name),
    );
    const busy = sorted.filter((file) => file.project.name === 'alone');
    return sorted
      .filter((file) => file.project.name !== 'alone')
      .flatMap((file, at) => (at % waiting_between === 0 ? [...busy.splice(0, 1), file] : [file]))
      .concat(busy);
  }
}

/** The rooms that decide about messages and tasks: `npm run coverage` counts what their unit tests reach, and has lower limits. */
const covered = [
  'contract',
  'kit/config',
  'kit/geo',
  'kit/hub',
  'kit/outbox',
  'kit/tasks',
  'kit/uplink',
  'mqtt',
  'toolkit/driver',
];

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    globalSetup: ['test/support/run-directory.ts', 'test/support/tell-skipped.ts'],
    sequence: { sequencer: Spread },
    // Tests wait for processes and peers: with four workers, two cores were busy for three quarters of the time; six starve each other.
    tags: [
      {
        name: 'long',
        description: 'A test that takes seconds, of what others in its room reach by a shorter way.',
      },
    ],
    maxWorkers: 5,
    // A worker that had a browser takes longer than the usual ten seconds to end on a busy machine.
    teardownTimeout: minute_ms,
    coverage: {
      provider: 'v8',
      include: covered.map((room) => `src/${room}/**/*.ts`),
      reporter: ['text-summary'],
      // Some points below what was reached when it was set: a new part without tests falls below it.
      thresholds: { lines: 90, statements: 88, functions: 88, branches: 82 },
    },
    projects: [
      {
        test: { ...common, name: 'alone', include: alone, exclude: long },
      },
      {
        test: {
          ...common,
          ...shared,
          name: 'e2e',
          include: [e2e, ...drivers_in_real_time],
          exclude: [...long, ...alone],
        },
      },
      {
        test: {
          ...common,
          ...shared,
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          exclude: [drivers, ...alone, ...long],
        },
      },
      {
        test: {
          ...common,
          name: 'drivers',
          include: [drivers],
          exclude: [...drivers_in_real_time, ...long],
          isolate: false,
          setupFiles: ['test/support/virtual-time.ts', ...shared.setupFiles],
        },
      },
      { test: { ...common, name: 'long', include: long, maxWorkers: 2, sequence: { groupOrder: 5 } } },
      {
        // A thousand kills of the daemon take 25 minutes, and longer where others keep the processors busy.
        test: {
          ...common,
          name: 'long-campaigns',
          include: ['test/faults/**/*.long.ts'],
          testTimeout: 60 * minute_ms,
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
      {
        // The first run makes the root file system of the container.
        test: {
          ...common,
          name: 'long-package',
          include: ['test/systemd/**/*.test.ts'],
          hookTimeout: 5 * minute_ms,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
      {
        // An emulated processor is twenty times slower than a real one, and the first run makes the file system of the machine with it.
        test: {
          ...common,
          name: 'long-machine',
          include: ['test/machine/**/*.test.ts'],
          testTimeout: 120 * minute_ms,
          hookTimeout: 120 * minute_ms,
          maxWorkers: 1,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
