/** Whether the daemon makes progress: what counts, what does not, and when systemd hears of it. */
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type Vitals, vitals } from '../../../../src/kit/app/vitals.ts';
import type { ReportParts } from '../../../../src/kit/app/status-report.ts';
import { attendSystemd } from '../../../../src/cli/daemon/daemon.ts';
import { openNotifier } from '../../../../src/platform/systemd/notify.ts';
import { fakeSystemd } from '../../../fakes/services/fake-systemd.ts';
import { eventually } from '../../../support/eventually.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { makeDirectory } from '../../../support/temporary.ts';
import { texts } from '../../../../src/cli/texts.ts';

const never = new Promise<never>(() => undefined);
const refused = async (): Promise<never> => {
  throw new Error('the disk is read-only');
};

/** The parts of a healthy daemon, and what a test says is different. */
function partsOf({
  find = async (): Promise<undefined> => undefined,
  committed = async (): Promise<void> => undefined,
  health = 'ok',
  unanswered_ms = 0,
  ticked_ms = () => performance.now(),
  mean_ms = 0,
  state = 'connected',
}: {
  readonly find?: () => Promise<undefined>;
  readonly committed?: () => Promise<void>;
  readonly health?: string;
  readonly unanswered_ms?: number;
  readonly ticked_ms?: () => number;
  readonly mean_ms?: number;
  readonly state?: string;
}): ReportParts {
  return {
    config: { broker: { url: 'mqtts://broker.example.com:8883' } },
    outbox: {
      find,
      committed,
      health: () => ({ state: health, detail: '' }),
      unanswered_ms: () => unanswered_ms,
    },
    hub: { ticked_ms },
    uplink: { status: () => ({ state }), broker_url: 'mqtts://broker.example.com:8883' },
    lag: { figures: () => ({ mean_ms, p99_ms: mean_ms, max_ms: mean_ms }) },
  } as unknown as ReportParts;
}

test.each([
  ['everything answers', {}, /^all is well$/],
  ['the broker is away', { state: 'waiting' }, /^all is well$/],
  ['the disk refuses', { health: 'failing', find: refused, committed: async () => never }, /^all is well$/],
  ['a commit is refused', { committed: refused }, /^all is well$/],
  [
    'the thread of the buffer is silent',
    { find: async () => never },
    /thread of the buffer has not answered/,
  ],
  ['a commit never ends', { committed: async () => never }, /thread of the buffer has not answered/],
  [
    'the disk hangs, and messages leave from memory',
    { find: async () => never, committed: refused, health: 'failing', unanswered_ms: 60_000 },
    /^all is well$/,
  ],
  [
    'the disk has hung for ten minutes',
    { find: async () => never, committed: refused, health: 'failing', unanswered_ms: 600_000 },
    /thread of the buffer has not answered/,
  ],
  [
    'nobody goes through the drivers',
    { ticked_ms: () => performance.now() - 60_000 },
    /drivers have not been/,
  ],
  ['the event loop is overloaded', { mean_ms: 2_500 }, /event loop is 2500 ms late on average/],
] as const)('where %s, the check reports it', async (_, how, trouble) => {
  const said = await vitals(partsOf(how)).check(50);
  expect(said ?? 'all is well').toMatch(trouble);
});

test('the watchdog is not fed while there is no progress, and the log has the reason and the end once', async () => {
  const systemd = await fakeSystemd(join(await makeDirectory(), 'notify'));
  const end = new AbortController();
  onTestFinished(() => {
    end.abort();
    systemd.leave();
  });
  const env = { NOTIFY_SOCKET: systemd.path, WATCHDOG_USEC: '30000' };
  const notifier = await openNotifier(env, { pid: process.pid, signal: end.signal });
  const log = recordingLog();
  let trouble: string | undefined;
  let checks = 0;
  const patient: Vitals = {
    summary: () => 'as ever',
    check: async () => {
      checks += 1;
      return trouble;
    },
  };
  attendSystemd({ vitals: patient, notifier, log: { ...log, fatal: unwanted, child: unwanted } }, end.signal);
  await systemd.until(/^STATUS=as ever$/, /^WATCHDOG=1$/, /^WATCHDOG=1$/);
  trouble = 'the thread of the buffer has not answered within 10 s';
  await eventually('the trouble is said', () => log.at('error').length > 0);
  systemd.read();
  const seen = checks;
  await eventually('more checks', () => checks > seen + 3);
  expect(systemd.read()).toEqual([]);
  trouble = undefined;
  await systemd.until(/^WATCHDOG=1$/);
  await eventually('the end of the trouble is said', () => log.at('info').length > 0);
  expect(log.lines.map(({ level, sentence, facts }) => [level, sentence, Object.keys(facts)])).toEqual([
    ['error', texts.no_progress, ['reason']],
    ['info', 'progress resumed', ['down_s']],
  ]);
});

function unwanted(): never {
  throw new Error('nobody asked for this');
}
