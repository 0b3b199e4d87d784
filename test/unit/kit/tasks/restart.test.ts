/** What the next run makes of the tasks that the last one left. */
import { describe, expect, it } from 'vitest';
import { CommandRefused } from '../../../../src/platform/errors.ts';
import { useFakeTime } from '../../../support/fake-time.ts';
import { commit_ms, iso, Kit, type Lab, pass, startLab } from '../../../support/kit/task-lab.ts';
import { texts } from '../../../../src/kit/tasks/texts.ts';

useFakeTime();

/** Kills the runner and starts another one on the same disk and devices, which resumes `after_ms` later. */
async function restart(lab: Lab, after_ms = 100): Promise<Lab> {
  lab.kill();
  await pass(after_ms);
  const next = startLab({ disk: lab.disk, kit: lab.kit });
  next.runner.resume();
  await pass(commit_ms + 1);
  return next;
}

describe('a task that had not started', () => {
  /** Journaled as pending, and killed before its start was. */
  const pending = async (dispatch: Parameters<Lab['send']>[0] = {}) => {
    const lab = startLab();
    const { id } = lab.send(dispatch);
    await pass(commit_ms + 1);
    expect(lab.disk.entry(id)).toMatchObject({ state: 'pending' });
    return { lab, id };
  };

  it('starts after a restart if it is still in time, and only once', async () => {
    const { lab, id } = await pending({ n: 5 });
    const next = await restart(lab);
    next.runner.resume();
    await pass(commit_ms);
    expect(lab.kit.invocations.map(({ n }) => n)).toEqual([5]);
    await lab.succeed();
    expect(next.last(id)).toMatchObject({ status: 'completed' });
  });

  it('starts too when the journal could not be read at the start and is handed over later, and only once', async () => {
    const { lab, id } = await pending({ n: 5 });
    lab.kill();
    const next = startLab({ disk: lab.disk, kit: lab.kit });
    const entry = lab.disk.entry(id);
    if (!entry) throw new Error('it was not journaled');
    next.runner.takeUp([entry]);
    next.runner.takeUp([entry]);
    await pass(commit_ms + 1);
    expect(lab.kit.invocations.map(({ n }) => n)).toEqual([5]);
    await lab.succeed();
    expect(next.last(id)).toMatchObject({ status: 'completed' });
  });

  it('expires if it is not', async () => {
    const { lab, id } = await pending();
    const next = await restart(lab, 30_000);
    expect(next.error(id)).toBe("expired: its deadline passed 20 s ago by the kit's clock; command not sent");
    expect(lab.kit.invocations).toHaveLength(0);
  });

  it('expires if the clock is not set', async () => {
    const { lab, id } = await pending();
    lab.kit.synced = false;
    const next = await restart(lab);
    expect(next.error(id)).toMatch(/^expired: the kit restarted and its clock is not set/u);
  });

  it('waits for its asset to be announced and online, and has no more time than before', async () => {
    const { lab, id } = await pending();
    lab.kit.drone.announced = false;
    const next = await restart(lab);
    await pass(3_000);
    lab.kit.drone.announced = true;
    lab.kit.drone.online = false;
    next.runner.assetsChanged();
    await pass(commit_ms);
    expect(lab.kit.invocations).toHaveLength(0);
    lab.kit.drone.online = true;
    next.runner.assetsChanged();
    await pass(commit_ms);
    expect(lab.kit.last.context.remaining_ms()).toBeLessThan(7_000);
    await lab.succeed();
    expect(next.last(id)).toMatchObject({ status: 'completed' });
  });

  it('expires when its asset does not come back', async () => {
    const { lab, id } = await pending();
    lab.kit.drone.announced = false;
    const next = await restart(lab);
    await pass(10_000);
    expect(next.error(id)).toBe('expired: its deadline passed before it started; command not sent');
  });

  it('is superseded by a safety command that had not started either', async () => {
    const lab = startLab();
    const goto = lab.send({ n: 1, command: 'goto' });
    const disarm = lab.send({ n: 2, command: 'disarm' });
    await pass(commit_ms);
    lab.kit.drone.announced = false;
    const next = await restart(lab);
    lab.kit.drone.announced = true;
    next.runner.assetsChanged();
    await pass(commit_ms);
    expect(lab.kit.invocations.map(({ command }) => command)).toEqual(['disarm']);
    expect(next.error(goto.id)).toBe('superseded by disarm');
    await lab.succeed();
    expect(next.last(disarm.id)).toMatchObject({ status: 'completed' });
  });

  it('runs once when the broker delivers it again while it waits', async () => {
    const { lab, id } = await pending();
    lab.kit.drone.announced = false;
    const next = await restart(lab);
    await next.give({ task_id: id, duplicate: true });
    lab.kit.drone.announced = true;
    next.runner.assetsChanged();
    await pass(commit_ms);
    await next.give({ task_id: id, duplicate: true });
    expect(lab.kit.invocations).toHaveLength(1);
    await lab.succeed();
  });
});

describe('a dispatch right after a restart', () => {
  /** Knows the asset, which its driver has not reached yet. */
  const early = () => {
    const kit = new Kit();
    const reached = { yes: false };
    const lab = startLab({
      kit,
      findCommand: (asset_id, name) =>
        reached.yes ? kit.find(asset_id, name) : { refusal: 'Falcon 1 is offline', isAwaited: true },
    });
    return { lab, kit, reached };
  };

  it('waits for its asset, and runs once when the asset is there', async () => {
    const { lab, kit, reached } = early();
    const id = await lab.give({ n: 3, command: 'goto' });
    await pass(2_000);
    expect(kit.invocations).toHaveLength(0);
    reached.yes = true;
    lab.runner.assetsChanged();
    await pass(commit_ms + 1);
    expect(kit.invocations.map(({ n }) => n)).toEqual([3]);
    expect(kit.last.context.remaining_ms()).toBeLessThan(8_100);
    await lab.succeed();
    expect(lab.last(id)).toMatchObject({ status: 'completed' });
  });

  it('lets no other wait when its command turns out not to touch the device', async () => {
    const { lab, kit, reached } = early();
    await lab.give({ n: 1, command: 'record' });
    await lab.give({ n: 2 });
    reached.yes = true;
    lab.runner.assetsChanged();
    await pass(commit_ms + 1);
    expect(kit.invocations.map(({ n }) => n)).toEqual([1, 2]);
    for (const call of kit.invocations) call.succeed();
    await pass(commit_ms);
  });

  it('expires at its deadline, and its payload is judged when the command is known', async () => {
    const { lab, kit, reached } = early();
    const id = await lab.give({ command: 'goto' });
    await pass(10_000);
    expect(lab.error(id)).toBe('expired: its deadline passed before it started; command not sent');
    const bad = await lab.give({ command: 'goto', payload: { speed: 7 } });
    reached.yes = true;
    lab.runner.assetsChanged();
    await pass(commit_ms + 1);
    expect(lab.error(bad)).toMatch(/^payload.speed/u);
    expect(kit.invocations).toHaveLength(0);
  });
});

describe('a task that was running', () => {
  it('is reported as unknown at once, without its asset and long before its deadline', async () => {
    const lab = startLab();
    const deadline = iso(lab.kit.clock.stamp().time_ms + 120_000);
    const id = await lab.give({ command: 'goto', deadline });
    lab.kit.drone.announced = false;
    const next = await restart(lab);
    expect(next.error(id)).toBe(texts.interrupted);
  });

  it('fails with an unknown outcome, and nothing is done again', async () => {
    const lab = startLab();
    const id = await lab.give({ command: 'goto' });
    const next = await restart(lab);
    expect(next.error(id)).toBe(texts.interrupted);
    expect(lab.kit.invocations).toHaveLength(1);
    await next.give({ task_id: id, command: 'goto' });
    expect(lab.kit.invocations).toHaveLength(1);
    const [first, second, third] = next.disk.reports(id);
    expect(second?.revision).toBeGreaterThan(first?.revision ?? Number.NaN);
    expect(third).toEqual(second);
  });

  it('whose handler was not called yet fails all the same, since its outcome is unknown', async () => {
    const lab = startLab();
    const { id } = lab.send();
    await pass(2 * commit_ms - 1);
    lab.disk.entries.set(id, { ...lab.disk.entries.get(id)!, state: 'running' });
    const next = await restart(lab);
    expect(next.error(id)).toBe(texts.interrupted);
    expect(lab.kit.invocations).toHaveLength(0);
  });

  it.each(['retained', 'live'] as const)(
    'fails with an unknown outcome when its dispatch comes again (%s) before the journal can be read',
    async (how) => {
      const lab = startLab();
      const id = await lab.give({ command: 'goto' });
      lab.kill();
      Object.assign(lab.disk, { failing: 'the disk fails', blind: true });
      const entry = lab.disk.entry(id);
      if (!entry) throw new Error('it was not journaled');
      const next = startLab({ disk: lab.disk, kit: lab.kit });
      await next.give({ task_id: id, command: 'goto', retained: how === 'retained' });
      Object.assign(lab.disk, { failing: undefined, blind: false });
      next.runner.takeUp([entry]);
      await pass(2_000);
      expect(next.last(id)).toMatchObject({
        status: 'failed',
        result: { error: texts.interrupted },
      });
      expect(lab.kit.invocations).toHaveLength(1);
      const revisions = next.disk.reports(id).map(({ revision }) => revision);
      expect(revisions).toEqual(revisions.toSorted((a, b) => a - b));
    },
  );

  it('runs again if its command is repeatable, with rising revisions', async () => {
    const lab = startLab();
    const id = await lab.give({ command: 'probe' });
    for (let pct = 1; pct <= 3; pct += 1) {
      lab.kit.last.context.progress('probing', pct);
      await pass(1_000);
    }
    expect(lab.kit.last.context.repeated).toBe(false);
    const next = await restart(lab);
    expect(lab.kit.invocations).toHaveLength(2);
    expect(lab.kit.last.context.repeated).toBe(true);
    await lab.succeed({ ok: true });
    const reports = next.disk.reports(id);
    expect(reports.map(({ status }) => status)).toEqual([
      'running',
      'running',
      'running',
      'running',
      'running',
      'completed',
    ]);
    const revisions = reports.map(({ revision }) => revision);
    expect(revisions).toEqual([...new Set(revisions)].toSorted((a, b) => a - b));
  });

  it('and is repeatable does not hide behind the failure of the second run what the first may have done', async () => {
    const lab = startLab();
    const id = await lab.give({ command: 'probe' });
    const next = await restart(lab);
    expect(lab.kit.invocations).toHaveLength(2);
    await lab.fail(new CommandRefused('the battery is low'));
    expect(next.error(id)).toBe(
      'the battery is low; an earlier run was interrupted by restart, outcome unknown',
    );
  });

  it('and is repeatable fails with an unknown outcome when it is out of time, or cancelled before its asset is back', async () => {
    const lab = startLab();
    const late = await lab.give({ command: 'probe' });
    const next = await restart(lab, 20_000);
    expect(next.error(late)).toBe(texts.interrupted);

    const cancelled = await next.give({ command: 'probe' });
    lab.kit.drone.announced = false;
    const last = await restart(next);
    last.runner.cancel(cancelled);
    await pass(commit_ms);
    expect(last.error(cancelled)).toBe(texts.interrupted);
  });

  it('and cannot be read any more fails with a sentence', async () => {
    const lab = startLab();
    const id = await lab.give();
    lab.disk.entries.set(id, { ...lab.disk.entries.get(id)!, dispatch: '{', state: 'pending' });
    const next = await restart(lab);
    expect(next.error(id)).toBe('the kit restarted and cannot read the dispatch; command not sent');
  });
});

describe('a stop of the connector', () => {
  it('records what running tasks come to in time, and leaves waiting ones for the next run', async () => {
    const lab = startLab();
    const running = await lab.give({ n: 1 });
    const waiting = await lab.give({ n: 2 });
    const stopped = lab.runner.stop(2_000);
    const { context } = lab.kit.last;
    expect(context.signal.aborted).toBe(true);
    await lab.fail(context.signal.reason);
    await stopped;
    expect(lab.disk.entry(running)?.result).toBe(
      '{"error":"interrupted by a stop of the connector, outcome unknown"}',
    );
    expect(lab.disk.entry(waiting)).toMatchObject({ state: 'pending' });
    const next = await restart(lab);
    expect(lab.kit.last.n).toBe(2);
    await lab.succeed();
    expect(next.last(waiting)).toMatchObject({ status: 'completed' });
  });

  it('does not wait for a handler that hangs, writes nothing afterwards, and the next run reports it', async () => {
    const lab = startLab();
    const id = await lab.give();
    const stopped = lab.runner.stop(2_000);
    await pass(2_000);
    await stopped;
    lab.kit.last.succeed();
    await pass(100);
    expect(lab.disk.entry(id)).toMatchObject({ state: 'running' });
    const next = await restart(lab);
    expect(next.error(id)).toBe(texts.interrupted);
  });

  it('reports nothing afterwards when the disk refuses a result, since no run would have the message', async () => {
    const lab = startLab();
    const id = await lab.give();
    lab.disk.failing = 'no space left';
    const stopped = lab.runner.stop(commit_ms / 2);
    lab.kit.last.succeed();
    await pass(commit_ms / 2);
    await stopped;
    const before = lab.disk.reports(id).length;
    await pass(10_000);
    expect(lab.disk.reports(id)).toHaveLength(before);
    lab.kill();
  });

  it('sends no final report again for a dispatch whose task the journal names only after the stop', async () => {
    const lab = startLab();
    const id = await lab.give();
    await lab.succeed();
    const before = lab.disk.reports(id).length;
    const { taken } = lab.send({ task_id: id });
    const stopped = lab.runner.stop(commit_ms / 2);
    await pass(10_000);
    await stopped;
    await taken;
    expect(lab.disk.reports(id)).toHaveLength(before);
  });

  it('leaves a dispatch at the broker that the disk refuses after the stop', async () => {
    const lab = startLab();
    lab.disk.failing = 'no space left';
    const { id, taken } = lab.send();
    const refused = taken.catch((error: unknown) => error);
    const stopped = lab.runner.stop(commit_ms / 2);
    await pass(10_000);
    await stopped;
    expect(await refused).toBeInstanceOf(CommandRefused);
    expect(lab.disk.reports(id)).toEqual([]);
    lab.kill();
  });

  it('leaves a repeatable task to the next run', async () => {
    const lab = startLab();
    const id = await lab.give({ command: 'probe' });
    const stopped = lab.runner.stop(2_000);
    await lab.fail(lab.kit.last.context.signal.reason);
    await stopped;
    const next = await restart(lab);
    await lab.succeed();
    expect(next.last(id)).toMatchObject({ status: 'completed' });
    expect(lab.kit.invocations).toHaveLength(2);
  });

  it('before its deadline frees what waits for it when nothing runs', async () => {
    const lab = startLab();
    await lab.give({ created_at: iso(0) });
    await lab.runner.stop(60_000);
    expect(lab.runner.stats()).toMatchObject({ running: 0, failed: 1 });
  });
});
