/** What observers of tasks are given, and when. */
import { describe, expect, it } from 'vitest';
import { useFakeTime } from '../../../support/fake-time.ts';
import { commit_ms, type Lab, pass, startLab } from '../../../support/kit/task-lab.ts';
import { texts } from '../../../../src/kit/tasks/texts.ts';

useFakeTime();

const kinds = (lab: Lab): readonly string[] => lab.activities.map(({ kind }) => kind);

describe('an observer of tasks', () => {
  it('is given the acceptance, the start and the end of a task, each once and when the journal has it', async () => {
    const lab = startLab();
    const { id } = lab.send();
    await pass(commit_ms - 1);
    expect(kinds(lab)).toEqual([]);
    await pass(1);
    expect(kinds(lab)).toEqual(['accepted']);
    expect(lab.kit.invocations).toHaveLength(0);
    await pass(commit_ms);
    expect(kinds(lab)).toEqual(['accepted', 'started']);
    lab.kit.last.context.progress('half way', 50);
    await pass(1_000);
    await lab.succeed();
    expect(kinds(lab)).toEqual(['accepted', 'started', 'completed']);
    expect(lab.activities.at(-1)).toMatchObject({
      task: { id, command_name: 'work', asset_id: lab.kit.drone.id },
      ran_ms: 1_000,
    });
  });

  it('is given nothing when the dispatch of a known task is delivered again', async () => {
    const lab = startLab();
    const id = await lab.give();
    await lab.give({ task_id: id });
    await lab.succeed();
    await lab.give({ task_id: id });
    expect(kinds(lab)).toEqual(['accepted', 'started', 'completed']);
  });

  it('is given the error of a task that failed while it ran, and of one that never started', async () => {
    const lab = startLab();
    await lab.give();
    await lab.fail(new Error('the vehicle is not ready'));
    await lab.give({ command: 'juggle' });
    expect(lab.activities.slice(2)).toMatchObject([
      { kind: 'failed', ran_ms: 0, error: 'the vehicle is not ready' },
      { kind: 'failed', ran_ms: null, error: 'Falcon 1 has no command "juggle"' },
    ]);
  });

  it('is given the end of a task whose outcome a restart made unknown, and no second acceptance of one that waited', async () => {
    const lab = startLab();
    const running = await lab.give({ n: 1 });
    const waiting = await lab.give({ n: 2 });
    lab.kill();
    await pass(1_000);
    const next = startLab({ disk: lab.disk, kit: lab.kit });
    next.runner.resume();
    await pass(2 * commit_ms);
    expect(next.activities).toMatchObject([
      { kind: 'failed', task: { id: running }, error: texts.interrupted },
      { kind: 'started', task: { id: waiting } },
    ]);
    await lab.succeed();
  });

  it('is given one end of a task that the disk does not take, and no start of its report that is not final', async () => {
    const lab = startLab();
    await lab.give();
    lab.disk.failing = 'disk full';
    lab.kit.last.succeed();
    await pass(3_000);
    expect(kinds(lab)).toEqual(['accepted', 'started', 'completed']);
    lab.disk.failing = undefined;
    await pass(1_000);
    expect(kinds(lab)).toEqual(['accepted', 'started', 'completed']);
    expect(lab.runner.stats()).toMatchObject({ completed: 1, failed: 0 });
  });

  it('is given one failure, and no start, of a dispatch that is refused while the disk refuses', async () => {
    const lab = startLab();
    lab.disk.failing = 'disk full';
    lab.disk.blind = true;
    lab.send();
    await pass(3_000);
    expect(kinds(lab)).toEqual([]);
    lab.disk.failing = undefined;
    await pass(10_000);
    expect(lab.activities).toMatchObject([{ kind: 'failed', ran_ms: null }]);
    expect(lab.kit.invocations).toHaveLength(0);
  });
});
