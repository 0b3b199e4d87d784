/** What protects a task from running twice when an old copy of the journal was put back and the broker delivers it again. */
import { describe, expect, it } from 'vitest';
import { useFakeTime } from '../../../support/fake-time.ts';
import { iso, pass, startLab } from '../../../support/kit/task-lab.ts';

useFakeTime();

describe('a task that an old copy of the journal does not know', () => {
  /** It was carried out; then the journal of before was put back. */
  const forgotten = async () => {
    const lab = startLab();
    const dispatch = { created_at: iso(Date.now()), command: 'goto' } as const;
    const id = await lab.give(dispatch);
    await lab.succeed();
    lab.kill();
    return { kit: lab.kit, again: { ...dispatch, task_id: id, duplicate: true } };
  };

  it('does not run again after its deadline, which has passed once the machine has booted', async () => {
    const { kit, again } = await forgotten();
    await pass(10_000);
    const next = startLab({ kit });
    const id = await next.give(again);
    expect(next.error(id)).toContain('expired: its deadline passed');
    expect(kit.invocations).toHaveLength(1);
  });

  it('does not move a machine while the clock is not set, since its deadline may have passed', async () => {
    const { kit, again } = await forgotten();
    kit.synced = false;
    const next = startLab({ kit });
    const id = await next.give(again);
    expect(next.last(id)).toMatchObject({ status: 'failed' });
    expect(kit.invocations).toHaveLength(1);
  });
});
