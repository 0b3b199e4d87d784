/** Whose turn it is: order, limits, safety commands and cancellation. */
import { describe, expect, it } from 'vitest';
import { useFakeTime } from '../../../support/fake-time.ts';
import { commit_ms, type Lab, pass, startLab } from '../../../support/kit/task-lab.ts';
import { texts } from '../../../../src/kit/tasks/texts.ts';

useFakeTime();

/** Lets every handler succeed until no more are called. */
async function finishAll(lab: Lab): Promise<void> {
  for (let done = 0; done < lab.kit.invocations.length; done += 1) {
    lab.kit.invocations[done]?.succeed();
    await pass(2 * commit_ms);
  }
}

describe('tasks of one asset', () => {
  it('run one at a time in the order of reception', async () => {
    const lab = startLab();
    const sent = [1, 2, 3].map((n) => lab.send({ n }));
    await pass(3 * commit_ms);
    await Promise.all(sent.map(async ({ taken }) => taken));
    expect(lab.kit.invocations.map(({ n }) => n)).toEqual([1]);
    expect(lab.runner.stats()).toMatchObject({ pending: 2, running: 1 });
    await finishAll(lab);
    expect(lab.kit.invocations.map(({ n }) => n)).toEqual([1, 2, 3]);
    expect(lab.runner.stats()).toMatchObject({ pending: 0, running: 0, completed: 3 });
  });

  it('do not wait for those of another asset', async () => {
    const lab = startLab();
    await lab.give({ n: 1 });
    await lab.give({ n: 2, asset: lab.kit.camera });
    expect(lab.kit.invocations.map(({ n }) => n)).toEqual([1, 2]);
    await finishAll(lab);
  });

  it('fail when they find their asset offline at their turn', async () => {
    const lab = startLab();
    await lab.give({ n: 1 });
    const second = await lab.give({ n: 2 });
    lab.kit.drone.online = false;
    await lab.succeed();
    expect(lab.error(second)).toBe('Falcon 1 is offline; command not sent');
  });

  it('expire in the queue when they wait beyond their deadline', async () => {
    const lab = startLab();
    await lab.give({ n: 1, deadline: new Date(Date.now() + 60_000).toISOString() });
    const second = await lab.give({ n: 2 });
    await pass(10_000);
    expect(lab.error(second)).toBe('expired: its deadline passed before it started; command not sent');
    await finishAll(lab);
    expect(lab.kit.invocations.map(({ n }) => n)).toEqual([1]);
  });
});

describe('a command that does not touch the device', () => {
  it('runs beside the others of its asset, one of its name at a time, and no safety command ends it', async () => {
    const lab = startLab();
    await lab.give({ n: 1, command: 'goto' });
    await lab.give({ n: 2, command: 'record' });
    const next = await lab.give({ n: 3, command: 'record' });
    await lab.give({ n: 4, command: 'disarm' });
    const called = (): readonly number[] => lab.kit.invocations.map(({ n }) => n);
    expect(called()).toEqual([1, 2]);
    lab.kit.invocations[0]?.fail(new Error('stopped'));
    await pass(2 * commit_ms);
    expect(called()).toEqual([1, 2, 4]);
    expect(lab.kit.invocations[1]?.context.signal.aborted).toBe(false);
    await finishAll(lab);
    expect(called()).toEqual([1, 2, 4, 3]);
    expect(lab.last(next)).toMatchObject({ status: 'completed' });
  });

  it('has its place among those that wait for the asset', async () => {
    const lab = startLab({ limits: { waiting_per_asset_max: 2, waiting_max: 100 } });
    for (const n of [1, 2, 3]) await lab.give({ n, command: 'record' });
    expect(lab.error(await lab.give({ n: 4 }))).toBe(
      'too many tasks waiting: 2 for this asset; command not sent',
    );
    await finishAll(lab);
  });
});

describe('too many waiting tasks', () => {
  it('fail at once beyond the limit of the asset, and a safety command does not', async () => {
    const lab = startLab({ limits: { waiting_per_asset_max: 2, waiting_max: 100 } });
    for (const n of [1, 2, 3]) await lab.give({ n });
    expect(lab.error(await lab.give({ n: 4 }))).toBe(
      'too many tasks waiting: 2 for this asset; command not sent',
    );
    await lab.give({ n: 5, command: 'disarm' });
    lab.kit.invocations[0]?.fail(new Error('stopped'));
    await pass(2 * commit_ms);
    expect(lab.kit.invocations.map(({ n }) => n)).toEqual([1, 5]);
    await finishAll(lab);
  });

  it('fail at once beyond the limit of the kit, also when all arrive in one moment', async () => {
    const lab = startLab({ limits: { waiting_per_asset_max: 16, waiting_max: 2 } });
    const sent = [1, 2, 3].map((n) => lab.send({ n, asset: n % 2 === 0 ? lab.kit.camera : lab.kit.drone }));
    await pass(2 * commit_ms);
    const third = sent[2]?.id ?? '';
    expect(lab.error(third)).toBe('too many tasks waiting: 2 on this kit; command not sent');
    await finishAll(lab);
  });
});

describe('a safety command', () => {
  it('supersedes those that wait, stops the one that runs, and starts when that has stopped', async () => {
    const lab = startLab();
    const running = await lab.give({ n: 1, command: 'goto' });
    const waiting = await lab.give({ n: 2, command: 'goto' });
    const disarm = await lab.give({ n: 3, command: 'disarm' });
    const [first] = lab.kit.invocations;
    expect(first?.context.signal.aborted).toBe(true);
    expect(lab.error(waiting)).toBe('superseded by disarm');
    expect(lab.kit.invocations).toHaveLength(1);
    first?.fail(first.context.signal.reason);
    await pass(2 * commit_ms);
    expect(lab.error(running)).toBe('superseded by disarm');
    expect(lab.kit.last).toMatchObject({ n: 3, command: 'disarm' });
    await finishAll(lab);
    expect(lab.last(disarm)).toMatchObject({ status: 'completed' });
  });

  it('may be one by its payload: to stop pre-empts, and to drive on waits for its turn', async () => {
    const lab = startLab();
    const running = await lab.give({ n: 1, command: 'goto' });
    await lab.give({ command: 'set_speed', payload: { n: 2, speed: 1 } });
    expect(lab.kit.last.context.signal.aborted).toBe(false);
    await lab.give({ command: 'set_speed', payload: { n: 3, speed: 0 } });
    const [first] = lab.kit.invocations;
    expect(first?.context.signal.aborted).toBe(true);
    first?.fail(first.context.signal.reason);
    await pass(2 * commit_ms);
    expect(lab.error(running)).toBe('superseded by set_speed');
    expect(lab.kit.invocations.map(({ n }) => n)).toEqual([1, 3]);
    await finishAll(lab);
  });

  it('waits one second at most for a handler that does not stop, whose late answer is ignored', async () => {
    const lab = startLab();
    const running = await lab.give({ n: 1, command: 'goto' });
    const { taken } = lab.send({ n: 2, command: 'land' });
    await pass(commit_ms);
    await taken;
    await pass(999);
    expect(lab.kit.invocations).toHaveLength(1);
    await pass(1 + commit_ms);
    expect(lab.kit.last).toMatchObject({ command: 'land' });
    expect(lab.error(running)).toBe('superseded by land');
    lab.kit.invocations[0]?.succeed();
    await finishAll(lab);
    expect(lab.disk.reports(running).map(({ status }) => status)).toEqual(['running', 'failed']);
    expect(lab.log.at('warn')).toEqual([texts.late_result]);
  });

  it('does not undo what the running task has reached meanwhile', async () => {
    const lab = startLab();
    const running = await lab.give({ n: 1, command: 'goto' });
    await lab.give({ n: 2, command: 'land' });
    lab.kit.invocations[0]?.succeed({ reached: true });
    await pass(2 * commit_ms);
    expect(lab.last(running)).toMatchObject({ status: 'completed', result: { reached: true } });
    await finishAll(lab);
  });

  it('gives way to a newer one only, and tasks received after it run after it', async () => {
    const lab = startLab();
    await lab.give({ n: 1, command: 'land' });
    await lab.give({ n: 2 });
    expect(lab.kit.invocations[0]?.context.signal.aborted).toBe(false);
    await lab.give({ n: 3, command: 'disarm' });
    expect(lab.kit.invocations[0]?.context.signal.aborted).toBe(true);
    await lab.give({ n: 4 });
    await finishAll(lab);
    expect(lab.kit.invocations.map(({ n }) => n)).toEqual([1, 3, 4]);
  });

  it('stops nothing when it cannot be carried out', async () => {
    const lab = startLab();
    await lab.give({ n: 1, command: 'goto' });
    const bad = await lab.give({ command: 'disarm', payload: { speed: 'fast' } });
    const stale = await lab.give({ command: 'disarm', retained: true });
    expect(lab.last(bad)).toMatchObject({ status: 'failed' });
    expect(lab.last(stale)).toMatchObject({ status: 'failed' });
    expect(lab.kit.last.context.signal.aborted).toBe(false);
    await finishAll(lab);
  });

  it('stops nothing before the journal has it', async () => {
    const lab = startLab();
    await lab.give({ n: 1, command: 'goto' });
    const { taken } = lab.send({ n: 2, command: 'disarm' });
    lab.runner.assetsChanged();
    expect(lab.kit.last.context.signal.aborted).toBe(false);
    await pass(commit_ms);
    await taken;
    expect(lab.kit.last.context.signal.aborted).toBe(true);
    await finishAll(lab);
  });

  it('stops nothing when it comes a second time', async () => {
    const lab = startLab();
    const disarm = await lab.give({ n: 1, command: 'disarm' });
    await finishAll(lab);
    await lab.give({ n: 2, command: 'goto' });
    await lab.give({ task_id: disarm, n: 1, command: 'disarm' });
    expect(lab.kit.last).toMatchObject({ n: 2 });
    expect(lab.kit.last.context.signal.aborted).toBe(false);
    await finishAll(lab);
  });
});

describe('a cancelled task', () => {
  it('fails and is never started when it was still in the queue', async () => {
    const lab = startLab();
    await lab.give({ n: 1 });
    const second = await lab.give({ n: 2 });
    lab.runner.cancel(second.toUpperCase());
    await finishAll(lab);
    expect(lab.error(second)).toBe(texts.cancelled_early);
    expect(lab.kit.invocations).toHaveLength(1);
  });

  it('fails once it is in the journal when it was on its way there', async () => {
    const lab = startLab();
    const { id, taken } = lab.send();
    lab.runner.cancel(id);
    await pass(2 * commit_ms);
    await taken;
    expect(lab.kit.invocations).toHaveLength(0);
    expect(lab.disk.entry(id)).toMatchObject({
      state: 'failed',
      result: '{"error":"cancelled before it started"}',
    });
  });

  it('whose start is on its way to the journal is not started', async () => {
    const lab = startLab();
    const { id } = lab.send();
    await pass(commit_ms);
    lab.runner.cancel(id);
    await pass(2 * commit_ms);
    expect(lab.kit.invocations).toHaveLength(0);
    expect(lab.error(id)).toBe(texts.cancelled_early);
    expect(lab.disk.entry(id)).toMatchObject({ state: 'failed' });
  });

  it('ends when its handler ends, and as it ends', async () => {
    const lab = startLab();
    const stopped = await lab.give();
    lab.runner.cancel(stopped);
    expect(lab.last(stopped)).toMatchObject({ status: 'running' });
    await lab.fail(lab.kit.last.context.signal.reason);
    expect(lab.error(stopped)).toBe('cancelled while running');

    const reached = await lab.give();
    lab.runner.cancel(reached);
    await lab.succeed();
    expect(lab.last(reached)).toMatchObject({ status: 'completed' });
  });

  it('is logged when it is unknown', () => {
    const lab = startLab();
    lab.runner.cancel('nobody');
    expect(lab.log.at('info')).toEqual([texts.cancel_ignored]);
  });
});
