/** The disk is full or read-only while tasks arrive, start and end. */
import { describe, expect, it } from 'vitest';
import { useFakeTime } from '../../support/fake-time.ts';
import { commit_ms, type Lab, pass, startLab } from '../../support/kit/task-lab.ts';
import { texts } from '../../../src/kit/tasks/texts.ts';

useFakeTime();

const cannot = 'the kit cannot record tasks now: no space left; command not sent';
/** Longer than the pauses between attempts to write and to read. */
const healed_ms = 40_000;

describe('Tasks while disk writes fail', () => {
  /** What a lab has after its disk is well again. */
  const heal = async (lab: Lab): Promise<void> => {
    lab.disk.failing = undefined;
    await pass(healed_ms);
  };

  it('a dispatch is acknowledged and not started, and fails once the disk has healed', async () => {
    const lab = startLab();
    lab.disk.failing = 'no space left';
    const id = await lab.give();
    await pass(commit_ms);
    expect(lab.disk.reports(id)).toMatchObject([
      {
        status: 'running',
        progress: {
          message:
            'not final, since the kit cannot record it: the kit cannot record tasks now: no space left',
        },
      },
    ]);
    await lab.give({ task_id: id });
    await heal(lab);
    await lab.give({ task_id: id });
    expect(lab.disk.reports(id).slice(1)).toMatchObject([{ status: 'failed' }, { status: 'failed' }]);
    expect(lab.error(id)).toBe(cannot);
    expect(lab.kit.invocations).toHaveLength(0);
    expect(lab.runner.stats()).toMatchObject({ pending: 0, running: 0, failed: 1 });
  });

  it('a dispatch that is refused for another reason reports that reason', async () => {
    const lab = startLab();
    lab.disk.failing = 'no space left';
    lab.kit.drone.online = false;
    const id = await lab.give();
    await pass(commit_ms);
    expect(lab.last(id)?.progress?.message).toBe(
      'not final, since the kit cannot record it (no space left): Falcon 1 is offline',
    );
    await heal(lab);
    expect(lab.error(id)).toBe('Falcon 1 is offline; command not sent');
  });

  it('an end that the disk turns out to have is reported again, and never another one', async () => {
    const lab = startLab();
    const id = await lab.give();
    await lab.succeed();
    lab.kill();
    const next = startLab({ disk: lab.disk, kit: lab.kit });
    next.disk.failing = 'input/output error';
    next.disk.blind = true;
    await next.give({ task_id: id });
    await heal(next);
    const finals = next.disk.reports(id).filter(({ status }) => status !== 'running');
    expect(finals.map(({ status }) => status)).toEqual(['completed', 'completed']);
    expect(lab.kit.invocations).toHaveLength(1);
  });

  it('a task whose start cannot be journaled is not started, and its failure is final only once it is recorded', async () => {
    const lab = startLab();
    const { id } = lab.send();
    await pass(commit_ms);
    lab.disk.failing = 'no space left';
    await pass(3 * commit_ms);
    expect(lab.disk.reports(id).map(({ status }) => status)).toEqual(['running', 'running']);
    expect(lab.kit.invocations).toHaveLength(0);
    await heal(lab);
    expect(lab.kit.invocations).toHaveLength(0);
    expect(lab.error(id)).toBe(cannot);
  });

  it('a task whose start could not be journaled runs after a restart only if no final report has left', async () => {
    const lab = startLab();
    const { id } = lab.send();
    await pass(commit_ms);
    lab.disk.failing = 'no space left';
    await pass(3 * commit_ms);
    lab.kill();
    lab.disk.failing = undefined;
    const next = startLab({ disk: lab.disk, kit: lab.kit });
    next.runner.resume();
    await pass(commit_ms);
    await lab.succeed();
    const reports = next.disk.reports(id);
    expect(reports.map(({ status }) => status)).toEqual(['running', 'running', 'running', 'completed']);
    expect(reports[2]?.revision).toBeGreaterThan(reports[1]?.revision ?? Number.NaN);
    expect(lab.kit.invocations).toHaveLength(1);
  });

  it('the end of a running task is reported as not final, and becomes final after it is recorded', async () => {
    const lab = startLab();
    const id = await lab.give();
    lab.disk.failing = 'no space left';
    lab.kit.last.succeed({ angle: 3 });
    await pass(2 * commit_ms);
    const note = 'not final, since the kit cannot record it (no space left): completed';
    expect(lab.last(id)).toMatchObject({ status: 'running', progress: { message: note } });
    expect(lab.log.at('error')).toEqual([texts.result_not_recorded]);
    expect(await lab.runner.find(id)).toMatchObject({ status: 'running', note });
    expect(await lab.runner.list(10)).toMatchObject([{ id, status: 'running', note }]);
    await lab.give({ task_id: id });
    await heal(lab);
    expect(lab.last(id)).toMatchObject({ status: 'completed', result: { angle: 3 } });
    expect(await lab.runner.find(id)).toMatchObject({ status: 'completed', note: null });
    expect(lab.kit.invocations).toHaveLength(1);
  });

  it('dispatches beyond the memory limit are neither answered nor started', async () => {
    const lab = startLab();
    lab.disk.failing = 'no space left';
    for (let n = 0; n < 1_000; n += 1) {
      lab.send();
      if (n % 100 === 99) await pass(commit_ms);
    }
    const id = await lab.give();
    expect(await lab.runner.list(2_000)).toHaveLength(1_000);
    expect(lab.log.at('warn')).toEqual([texts.too_many_results]);
    await heal(lab);
    expect(lab.disk.reports(id)).toEqual([]);
    expect(lab.kit.invocations).toHaveLength(0);
  });
});

describe('a slow disk', () => {
  it('does not let a task start after its deadline', async () => {
    const lab = startLab();
    const { id } = lab.send({ deadline: new Date(Date.now() + commit_ms + 10).toISOString() });
    await pass(3 * commit_ms);
    expect(lab.kit.invocations).toHaveLength(0);
    expect(lab.error(id)).toBe('expired: its deadline passed before it started; command not sent');
  });
});
