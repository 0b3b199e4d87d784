/** How often the payload of a task is validated, and by whose schema. */
import { describe, expect, it } from 'vitest';
import { useFakeTime } from '../../../support/fake-time.ts';
import { commit_ms, type Lab, pass, startLab } from '../../../support/kit/task-lab.ts';

useFakeTime();

async function restart(lab: Lab): Promise<Lab> {
  lab.kill();
  await pass(1_000);
  const next = startLab({ disk: lab.disk, kit: lab.kit });
  next.runner.resume();
  await pass(2 * commit_ms);
  return next;
}

describe('the payload of a task', () => {
  it('is validated once between the reception of the dispatch and the end of the task', async () => {
    const lab = startLab();
    const id = await lab.give({ command: 'set_speed', payload: { n: 1, speed: 1 } });
    await lab.succeed();
    expect(lab.last(id)).toMatchObject({ status: 'completed' });
    expect(lab.kit.validations).toBe(1);
  });

  it('is validated once however long the task waits, whatever happens around it, and whether it pre-empts', async () => {
    const lab = startLab();
    await lab.give({ n: 1 });
    await lab.give({ command: 'set_speed', payload: { n: 2, speed: 1 } });
    await lab.give({ n: 3, asset: lab.kit.camera });
    for (let changes = 0; changes < 10; changes += 1) lab.runner.assetsChanged();
    await lab.give({ command: 'set_speed', payload: { n: 4, speed: 0 } });
    lab.kit.invocations[0]?.fail(new Error('stopped'));
    await pass(2 * commit_ms);
    expect(lab.kit.invocations.map(({ n }) => n)).toEqual([1, 3, 4]);
    expect(lab.kit.validations).toBe(4);
    for (const call of lab.kit.invocations) call.succeed();
    await pass(commit_ms);
  });

  it('is validated once when the dispatch is delivered twice', async () => {
    const lab = startLab();
    const { id } = lab.send({ n: 1 });
    lab.send({ task_id: id, n: 1 });
    await pass(2 * commit_ms);
    await lab.give({ task_id: id, n: 1 });
    expect(lab.kit.invocations).toHaveLength(1);
    expect(lab.kit.validations).toBe(1);
    await lab.succeed();
  });

  it('is validated once after a restart, when its asset is announced', async () => {
    const lab = startLab();
    await lab.give({ n: 1 });
    const waiting = await lab.give({ command: 'set_speed', payload: { n: 2, speed: 1 } });
    lab.kit.drone.announced = false;
    lab.kit.validations = 0;
    const next = await restart(lab);
    for (let changes = 0; changes < 10; changes += 1) next.runner.assetsChanged();
    expect(lab.kit.validations).toBe(0);
    lab.kit.drone.announced = true;
    next.runner.assetsChanged();
    await pass(commit_ms);
    await lab.succeed();
    expect(next.last(waiting)).toMatchObject({ status: 'completed' });
    expect(lab.kit.validations).toBe(1);
  });
});

describe('a task that waits while its driver announces other commands', () => {
  it('is carried out by the newest handler', async () => {
    const lab = startLab();
    await lab.give({ n: 1 });
    const waiting = await lab.give({ n: 2 });
    lab.kit.announceAgain();
    lab.runner.assetsChanged();
    lab.kit.last.succeed();
    await pass(2 * commit_ms);
    await lab.succeed();
    expect(lab.last(waiting)).toMatchObject({ status: 'completed' });
  });

  it('fails when the newest schema refuses its payload, and nothing is done', async () => {
    const lab = startLab();
    await lab.give({ n: 1 });
    const waiting = await lab.give({ payload: { n: 2, speed: 1 } });
    lab.kit.speed_max = 0.5;
    lab.kit.announceAgain();
    lab.kit.last.succeed();
    await pass(2 * commit_ms);
    expect(lab.error(waiting)).toBe('payload.speed: Too big: expected number to be <=0.5 (knots)');
    expect(lab.kit.invocations.map(({ n }) => n)).toEqual([1]);
  });

  it('stops nothing with a payload that the newest schema refuses', async () => {
    const lab = startLab();
    await lab.give({ n: 1 });
    const { id } = lab.send({ command: 'set_speed', payload: { n: 2, speed: 0 } });
    lab.kit.speed_max = -1;
    lab.kit.announceAgain();
    await pass(2 * commit_ms);
    expect(lab.kit.last.context.signal.aborted).toBe(false);
    lab.kit.last.succeed();
    await pass(2 * commit_ms);
    expect(lab.error(id)).toMatch(/^payload\.speed: Too big/u);
  });
});
