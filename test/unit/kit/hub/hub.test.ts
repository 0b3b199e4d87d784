/** Drivers beside each other, their state as shown, and the commands that tasks may call. */
import { describe, expect, it, vi } from 'vitest';
import { assetId } from '../../../../src/contract/identity.ts';
import { channels } from '../../../../src/contract/topics.ts';
import { DeviceRejected, DeviceUnreachable } from '../../../../src/platform/errors.ts';
import { commands_max } from '../../../../src/kit/hub/commands.ts';
import { aborted, sleep } from '../../../../src/platform/time.ts';
import { command, drone, fix, scriptedDriver, scripts } from '../../../fakes/scripted-driver.ts';
import { kit_id } from '../../../support/kit/hub-lab.ts';
import { testHub } from '../../../support/kit/test-hub.ts';
import { useFakeTime } from '../../../support/fake-time.ts';

useFakeTime();

const id = assetId(kit_id, 'drone-1');
const settle = async (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);

it('runs each driver independently of the others', async () => {
  const lab = testHub({ configured: ['good', 'a', 'b', 'c', 'd'] });
  const good = scriptedDriver(async (host) => {
    const sink = host.announce(drone());
    for (let second = 0; !host.signal.aborted && second < 20; second += 1) {
      sink.publish('gps', fix(second));
      await sleep(1_000, host.signal);
    }
    await aborted(host.signal);
  });
  void lab.run(scriptedDriver(scripts.throwsAtOnce), 'a');
  void lab.run(scriptedDriver(scripts.endsEarly), 'b');
  void lab.run(scriptedDriver(scripts.neverAnswers), 'c');
  void lab.run(scriptedDriver(scripts.hangsOnStop), 'd');
  void lab.run(good, 'good');
  await vi.advanceTimersByTimeAsync(25_000);
  expect(lab.outbox.on(channels.feed(id, 'gps'))).toHaveLength(20);
  const states = Object.fromEntries(lab.hub.drivers().map((each) => [each.name, each.state]));
  expect(states).toEqual({ a: 'down', b: 'down', c: 'starting', d: 'up', good: 'up' });
  const stopped = lab.stop();
  await vi.advanceTimersByTimeAsync(3_000);
  await stopped;
  expect(lab.hub.drivers().find((each) => each.name === 'd')?.state).toBe('hung');
});

it('reports the assets of an abandoned driver offline and ignores its later calls', async () => {
  const lab = testHub();
  let late: (() => void) | undefined;
  void lab.run(
    scriptedDriver(async (host) => {
      const sink = host.announce(drone());
      late = () => sink.publish('gps', fix());
      await new Promise<never>(() => undefined);
    }),
  );
  await settle();
  const stopped = lab.stop();
  await vi.advanceTimersByTimeAsync(3_000);
  await stopped;
  late?.();
  expect(lab.hub.assets()).toMatchObject([{ status: 'offline', reason: 'did not stop within 3 s' }]);
  expect(lab.outbox.on(channels.feed(id, 'gps'))).toEqual([]);
});

it('shows why a driver is down, since when, and when it is tried next', async () => {
  const lab = testHub();
  void lab.run(scriptedDriver(scripts.throwsAtOnce));
  await settle();
  const [view] = lab.hub.drivers();
  expect(view).toMatchObject({ driver: 'scripted', state: 'down', reason: 'nobody answers at 10.0.0.7' });
  const wait_ms = Date.parse(view?.next_try_at ?? '') - Date.now();
  expect(wait_ms).toBeGreaterThanOrEqual(500);
  expect(wait_ms).toBeLessThanOrEqual(1_000);
  await vi.advanceTimersByTimeAsync(30_000);
  expect(lab.hub.drivers()[0]?.since).toBe(view?.since);
});

it('calls no function of its owner before it is returned', async () => {
  const early = () => {
    throw new Error('called too early');
  };
  const lab = testHub({ isOnline: early, allow: early, observe: early });
  await lab.stop();
  expect(lab.hub.drivers()).toEqual([]);
});

it('shows a rejected driver, and when it is tried next', async () => {
  const lab = testHub();
  void lab.run(
    scriptedDriver(async () => {
      throw new DeviceRejected('camera 10.0.0.7: password refused');
    }),
  );
  await settle();
  expect(lab.hub.drivers()).toMatchObject([
    { state: 'rejected', reason: 'camera 10.0.0.7: password refused' },
  ]);
  expect(lab.hub.drivers()[0]?.next_try_at).toMatch(/^\d{4}-.+Z$/u);
});

it('shows no facts of a driver that has lost its device', async () => {
  const lab = testHub();
  const losing = Promise.withResolvers<never>();
  void lab.run(
    scriptedDriver(async (host) => {
      host.reportStatus({ wwan0: 'connected, 4G, 70 %' });
      await losing.promise;
    }),
  );
  await settle();
  expect(lab.hub.drivers()).toMatchObject([{ facts: { wwan0: 'connected, 4G, 70 %' } }]);
  losing.reject(new DeviceUnreachable('ModemManager has exited'));
  await settle();
  expect(lab.hub.drivers()).toMatchObject([{ state: 'down', facts: {} }]);
});

it('shows a limited number of the facts that a driver reports of itself', async () => {
  const lab = testHub();
  const facts = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`fact_${index}`, index]));
  (await lab.hostOf()).reportStatus(facts);
  expect(Object.keys(lab.hub.drivers()[0]?.facts ?? {})).toHaveLength(32);
});

describe('commands', () => {
  const allow = (_asset: unknown, each: { readonly name: string }) =>
    each.name === 'arm' ? 'arm is disabled on this kit (commands.disabled)' : true;

  it('finds a live command of an asset', async () => {
    const lab = testHub();
    void lab.run(scriptedDriver(scripts.wellBehaved));
    await settle();
    const found = lab.hub.findCommand(id, 'arm');
    expect(found).toMatchObject({ asset: { asset_id: id, asset_key: 'drone-1', online: true } });
    if (!('command' in found)) throw new Error(found.refusal);
    const context = { signal: AbortSignal.abort(), progress: () => undefined, remaining_ms: () => 0 };
    await expect(found.command.read({}).run(context)).resolves.toEqual({ done: 'arm' });
    await lab.stop();
    expect(lab.hub.findCommand(id, 'arm')).toMatchObject({ asset: { online: false } });
  });

  it('neither lists nor returns commands that local policy refuses', async () => {
    const lab = testHub({ allow });
    (await lab.hostOf()).announce(drone(), [command('arm'), command('disarm')]);
    expect(lab.outbox.on(channels.commands(id))).toMatchObject([{ commands: [{ name: 'disarm' }] }]);
    expect(lab.hub.findCommand(id, 'arm')).toEqual({
      refusal: 'arm is disabled on this kit (commands.disabled)',
    });
    expect(lab.hub.findCommand(id, 'land')).toEqual({
      refusal: 'Drone drone-1 has no command "land"; it has disarm',
    });
  });

  it('answers for an unknown asset with a sentence', async () => {
    const lab = testHub();
    expect(lab.hub.findCommand(id, 'arm')).toEqual({ refusal: `this kit has no asset ${id}` });
  });

  it('keeps the first of two commands of one name, and a limited number', async () => {
    const lab = testHub();
    const many = Array.from({ length: commands_max + 1 }, (_, index) => command(`command_${index}`));
    const host = await lab.hostOf();
    host.announce(drone(), [command('arm'), command('arm', { description: 'Another.' })]);
    host.announce(drone('drone-2'), many);
    expect(lab.outbox.on(channels.commands(id))).toMatchObject([
      { commands: [{ description: 'Does arm.' }] },
    ]);
    const second = lab.outbox.on(channels.commands(assetId(kit_id, 'drone-2')))[0];
    expect(second).toHaveProperty('commands.length', commands_max);
  });
});
