/** The disk is full or read-only while tasks arrive, start and end. */
import { describe, expect, it } from 'vitest';
import { useFakeTime } from '../support/fake-time.ts';
import { commit_ms, pass, startLab } from '../support/task-lab.ts';

useFakeTime();

const cannot = 'the kit cannot record tasks now: no space left; nothing was done';

describe('while the disk takes nothing', () => {
  it('a dispatch fails from memory, is acknowledged, and has the same answer when it comes again after the disk has healed', async () => {
    const lab = startLab();
    lab.disk.failing = 'no space left';
    const id = await lab.give();
    expect(lab.error(id)).toBe(cannot);
    lab.disk.failing = undefined;
    await lab.give({ task_id: id });
    expect(lab.disk.reports(id).map(({ status }) => status)).toEqual(['failed', 'failed']);
    expect(lab.kit.invocations).toHaveLength(0);
    expect(lab.runner.stats()).toMatchObject({ pending: 0, running: 0, failed: 1 });
  });

  it('a dispatch that is refused for another reason says that reason', async () => {
    const lab = startLab();
    lab.disk.failing = 'no space left';
    lab.kit.drone.online = false;
    const id = await lab.give();
    expect(lab.error(id)).toBe('Falcon 1 is offline; nothing was done');
  });

  it('a task whose start cannot be journaled is not started', async () => {
    const lab = startLab();
    const { id } = lab.send();
    await pass(commit_ms);
    lab.disk.failing = 'no space left';
    await pass(2 * commit_ms);
    expect(lab.kit.invocations).toHaveLength(0);
    expect(lab.error(id)).toBe(cannot);
    const next = await lab.give();
    expect(lab.error(next)).toBe(cannot);
  });

  it('the end of a running task is reported from memory, shown, and sent again on demand', async () => {
    const lab = startLab();
    const id = await lab.give();
    lab.disk.failing = 'no space left';
    lab.kit.last.succeed({ angle: 3 });
    await pass(commit_ms);
    expect(lab.last(id)).toMatchObject({ status: 'completed', result: { angle: 3 } });
    expect(lab.log.at('error')).toEqual(['a task ended and could not be journaled']);
    expect(await lab.runner.find(id)).toMatchObject({ status: 'completed' });
    expect(await lab.runner.list(10)).toMatchObject([{ id, status: 'completed' }]);
    await lab.give({ task_id: id });
    expect(lab.disk.reports(id).map(({ status }) => status)).toEqual(['running', 'completed', 'completed']);
    expect(lab.kit.invocations).toHaveLength(1);
  });

  it('what is remembered is bounded: the oldest answers go first', async () => {
    const lab = startLab();
    lab.disk.failing = 'no space left';
    const first = await lab.give();
    for (let n = 0; n < 1_000; n += 1) lab.send();
    await pass(2 * commit_ms);
    const all = await lab.runner.list(2_000);
    expect(all).toHaveLength(1_000);
    expect(all.map(({ id }) => id)).not.toContain(first);
  });
});

describe('a slow disk', () => {
  it('does not let a task start after its deadline', async () => {
    const lab = startLab();
    const { id } = lab.send({ deadline: new Date(Date.now() + commit_ms + 10).toISOString() });
    await pass(3 * commit_ms);
    expect(lab.kit.invocations).toHaveLength(0);
    expect(lab.error(id)).toBe('expired: its deadline passed before it started; nothing was done');
  });
});
