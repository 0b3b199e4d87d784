/** What systemd hears of the service, and that nothing is loaded or sent where no systemd is. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openNotifier } from '../../../../src/platform/systemd/notify.ts';
import { type FakeSystemd, fakeSystemd } from '../../../fakes/services/fake-systemd.ts';
import { eventually } from '../../../support/eventually.ts';
import { makeDirectory } from '../../../support/temporary.ts';
import { testDirectory } from '../../../support/test-directory.ts';

/** A notifier for a systemd that listens at `path`, with this much more in its environment. */
async function notified(path: string, more: Readonly<Record<string, string>> = {}, pid = 7) {
  const systemd: FakeSystemd = await fakeSystemd(path);
  const end = new AbortController();
  onTestFinished(() => {
    end.abort();
    systemd.leave();
  });
  const notifier = await openNotifier({ NOTIFY_SOCKET: path, ...more }, { pid, signal: end.signal });
  return { systemd, notifier, end };
}

test('every state is sent in the form of sd_notify, to a path and to an abstract address', async () => {
  const dir = await makeDirectory();
  for (const path of [join(dir, 'notify'), `@kit-connector-${randomUUID()}`]) {
    const { systemd, notifier } = await notified(path);
    notifier.status('opening\nthe buffer');
    notifier.extendStart(60_000);
    notifier.ready();
    notifier.alive();
    const before_us = process.hrtime.bigint() / 1_000n;
    notifier.reloading();
    notifier.stopping();
    const [status, extended, ready, alive, reloading = '', stopping, ...more] = systemd.read().map(String);
    expect([status, extended, ready, alive, stopping, more]).toEqual([
      'STATUS=opening the buffer',
      'EXTEND_TIMEOUT_USEC=60000000',
      'READY=1',
      'WATCHDOG=1',
      'STOPPING=1',
      [],
    ]);
    const [, usec = '0'] = /^RELOADING=1\nMONOTONIC_USEC=(\d+)$/.exec(reloading) ?? [];
    expect(Number(BigInt(usec) - before_us)).toBeGreaterThanOrEqual(0);
  }
});

test('a status is sent only when it has changed', async () => {
  const dir = await testDirectory();
  const { systemd, notifier } = await notified(join(dir, 'notify'));
  for (const line of ['connected', 'connected', 'not connected', 'not connected']) notifier.status(line);
  expect(systemd.read().map(String)).toEqual(['STATUS=connected', 'STATUS=not connected']);
});

test('messages that a busy systemd does not accept are sent later in order, and watchdog messages never displace READY', async () => {
  const dir = await testDirectory();
  const { systemd, notifier } = await notified(join(dir, 'notify'));
  let told = 0;
  // Nobody reads: the queue of the socket fills up.
  while (told < 2_000) {
    notifier.status(`line ${told}`);
    told += 1;
  }
  notifier.ready();
  const heard: string[] = [];
  await eventually('READY at the end', () => {
    heard.push(...systemd.read().map(String));
    return heard.at(-1) === 'READY=1';
  });
  expect(heard.at(-2)).toBe(`STATUS=line ${told - 1}`);
});

test.each([
  [{ WATCHDOG_USEC: '30000000' }, 30_000],
  [{ WATCHDOG_USEC: '30000000', WATCHDOG_PID: '7' }, 30_000],
  [{ WATCHDOG_USEC: '30000000', WATCHDOG_PID: '8' }, null],
  [{ WATCHDOG_USEC: 'soon' }, null],
  [{}, null],
])('with %o the watchdog asks for a beat within %s ms', async (env, watchdog_ms) => {
  const dir = await testDirectory();
  const { notifier } = await notified(join(dir, 'notify'), env);
  expect(notifier.watchdog_ms).toBe(watchdog_ms);
});

test('a missing or closed notify socket costs nothing', async () => {
  const dir = await testDirectory();
  const { systemd, notifier, end } = await notified(join(dir, 'notify'));
  systemd.leave();
  notifier.ready();
  end.abort();
  expect(() => notifier.alive()).not.toThrow();
});

test('nothing is sent and no watchdog runs without systemd', async () => {
  const signal = new AbortController().signal;
  const notifier = await openNotifier({ WATCHDOG_USEC: '1000000' }, { pid: 7, signal });
  expect(notifier.watchdog_ms).toBeNull();
  expect(() => notifier.ready()).not.toThrow();
});
