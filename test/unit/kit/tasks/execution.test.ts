/** What becomes of a task while its handler works. */
import { z } from 'zod';
import { describe, expect, it } from 'vitest';
import { CommandRefused } from '../../../../src/platform/errors.ts';
import { useFakeTime } from '../../../support/fake-time.ts';
import { commit_ms, iso, pass, startLab } from '../../../support/kit/task-lab.ts';
import { texts } from '../../../../src/kit/tasks/texts.ts';

useFakeTime();

describe('at its deadline', () => {
  it.each([
    [{ n: 1 }, 10],
    [{ n: 1, speed: 1 }, 60],
  ])('%o has %d s where the dispatch names none', async (payload, seconds) => {
    const lab = startLab();
    const { id } = lab.send({ command: 'goto', payload });
    await pass(1_000 * seconds - 1);
    expect(lab.kit.last.context.signal.aborted).toBe(false);
    await pass(1);
    expect(lab.kit.last.context.signal.aborted).toBe(true);
    lab.kit.last.fail(new Error('late'));
    await pass(2 * commit_ms);
    expect(lab.last(id)).toMatchObject({ status: 'failed' });
  });

  it('a running task is asked to stop, fails two seconds later, and its asset is free', async () => {
    const lab = startLab();
    const id = await lab.give({ n: 1 });
    await pass(10_000 - 2 * commit_ms - 1);
    expect(lab.kit.last.context.signal.aborted).toBe(false);
    await pass(1);
    expect(lab.kit.last.context.signal.aborted).toBe(true);
    await pass(1_999 + commit_ms);
    expect(lab.last(id)).toMatchObject({ status: 'running' });
    await pass(1);
    expect(lab.error(id)).toBe(texts.no_answer);
    await lab.give({ n: 2 });
    expect(lab.kit.last.n).toBe(2);
    lab.kit.invocations[0]?.fail(new Error('too late'));
    await lab.succeed();
    expect(lab.disk.reports(id)).toHaveLength(2);
    expect(lab.log.at('warn')).toEqual([texts.late_result]);
  });

  it.each([
    ['gives up without a word', new Error('aborted'), texts.no_answer],
    [
      'explains itself',
      new CommandRefused('the drone did not confirm DISARM'),
      'the drone did not confirm DISARM',
    ],
  ])('a handler that %s ends the task with the sentence that says more', async (_how, thrown, sentence) => {
    const lab = startLab();
    const id = await lab.give();
    await pass(10_000);
    await lab.fail(thrown);
    expect(lab.error(id)).toBe(sentence);
  });

  it('an effect that was seen within the grace counts', async () => {
    const lab = startLab();
    const id = await lab.give();
    await pass(11_000);
    await lab.succeed();
    expect(lab.last(id)).toMatchObject({ status: 'completed' });
  });

  it('a handler knows how much time it has left', async () => {
    const lab = startLab();
    await lab.give();
    await pass(4_000 - 2 * commit_ms);
    expect(lab.kit.last.context.remaining_ms()).toBe(6_000);
    await pass(7_000);
    expect(lab.kit.last.context.remaining_ms()).toBe(0);
    await lab.succeed();
  });
});

describe('a request to stop a running task', () => {
  it('is reported with what the handler reports about the outcome', async () => {
    const lab = startLab();
    const id = await lab.give();
    lab.runner.cancel(id);
    await lab.fail(new CommandRefused('arm was sent; outcome unknown'));
    expect(lab.error(id)).toBe('cancelled while running: arm was sent; outcome unknown');
    const second = await lab.give();
    const disarm = await lab.give({ command: 'disarm' });
    lab.kit.invocations.at(-1)?.fail(new CommandRefused('arm was sent; outcome unknown'));
    await pass(commit_ms + 1);
    expect(lab.error(second)).toBe('superseded by disarm: arm was sent; outcome unknown');
    await lab.succeed();
    expect(lab.last(disarm)).toMatchObject({ status: 'completed' });
  });
});

describe('the age of a task', () => {
  it('counts from its creation in the cloud, and continues while it runs', async () => {
    const lab = startLab();
    const created_at = iso(lab.kit.clock.stamp().time_ms - 3_000);
    await lab.give({ created_at });
    const { age_ms } = lab.kit.last.context;
    expect(age_ms?.()).toBe(3_000 + 2 * commit_ms);
    await pass(2_000);
    lab.kit.jump_ms = 365 * 86_400_000;
    expect(age_ms?.()).toBe(5_000 + 2 * commit_ms);
    await lab.succeed();
  });

  it('is not known when the clock was not set at its reception', async () => {
    const lab = startLab();
    lab.kit.synced = false;
    await lab.give({ command: 'work' });
    expect(lab.kit.last.context.age_ms?.()).toBeNull();
    await lab.succeed();
  });
});

describe('a jump of the time of day', () => {
  it.each([365 * 86_400_000, -365 * 86_400_000])(
    'of %d ms neither ends nor extends a running task',
    async (jump_ms) => {
      const lab = startLab();
      const id = await lab.give();
      lab.kit.jump_ms = jump_ms;
      await pass(9_000);
      expect(lab.kit.last.context.signal.aborted).toBe(false);
      await pass(1_000);
      expect(lab.kit.last.context.signal.aborted).toBe(true);
      await lab.fail(new Error('stopped'));
      expect(lab.last(id)).toMatchObject({ status: 'failed' });
    },
  );

  it('ends a queued dispatch that it shows to be stale, before it starts', async () => {
    const lab = startLab();
    await lab.give({ n: 1 });
    const second = await lab.give({ n: 2 });
    lab.kit.jump_ms = 60_000;
    await lab.succeed();
    expect(lab.error(second)).toBe('expired: its deadline passed before it started; command not sent');
  });

  it('ends a task that it shows to be stale while its start is on its way to the disk, before its handler is called', async () => {
    const lab = startLab();
    await lab.give({ n: 1 });
    const second = await lab.give({ n: 2 });
    lab.kit.last.succeed();
    await pass(1);
    // Its turn has come, and the journal has not answered yet.
    expect(lab.kit.invocations).toHaveLength(1);
    lab.kit.jump_ms = 60_000;
    await pass(3 * commit_ms);
    expect(lab.kit.invocations).toHaveLength(1);
    expect(lab.error(second)).toBe('expired: its deadline passed before it started; command not sent');
  });
});

describe('progress', () => {
  it('is reported at once, then at most once a second, the newest only, and not after the end', async () => {
    const lab = startLab();
    const id = await lab.give();
    const { progress } = lab.kit.last.context;
    for (let pct = 0; pct <= 50; pct += 1) progress(`at ${pct}`, pct);
    await pass(1_000);
    progress('near the end', 400);
    await pass(999 + commit_ms);
    expect(lab.disk.reports(id).map((report) => report.progress)).toEqual([
      undefined,
      { message: 'at 0', pct: 0 },
      { message: 'at 50', pct: 50 },
    ]);
    await pass(1);
    expect(lab.last(id)).toMatchObject({
      status: 'running',
      revision: 4,
      progress: { message: 'near the end', pct: 100 },
    });
    lab.kit.last.succeed();
    await pass(0);
    progress('still there');
    await pass(2_000);
    expect(lab.last(id)).toMatchObject({ status: 'completed' });
    const revisions = lab.disk.reports(id).map(({ revision }) => revision);
    expect(revisions).toEqual(revisions.toSorted((a, b) => a - b));
  });
});

describe('what a handler gives back', () => {
  const resultOf = async (settle: (lab: ReturnType<typeof startLab>) => void) => {
    const lab = startLab();
    const id = await lab.give();
    settle(lab);
    await pass(commit_ms);
    return { status: lab.last(id)?.status, result: lab.last(id)?.result };
  };

  it('is completed without its result when that is too large or no JSON', async () => {
    expect(await resultOf((lab) => lab.kit.last.succeed({ picture: 'x'.repeat(70_000) }))).toEqual({
      status: 'completed',
      result: {
        truncated: true,
        reason: 'the result has 70014 characters of JSON; at most 65536 are reported',
      },
    });
    const circle: Record<string, never> = {};
    Object.assign(circle, { circle });
    const { status, result } = await resultOf((lab) => lab.kit.last.succeed(circle));
    expect(status).toBe('completed');
    expect(result).toMatchObject({ truncated: true });
  });

  it('fails with the sentence of what was thrown', async () => {
    const thrown = async (error: unknown) => (await resultOf((lab) => lab.kit.last.fail(error))).result;
    expect(await thrown(new CommandRefused('the drone refuses ARM: compass not calibrated'))).toEqual({
      error: 'the drone refuses ARM: compass not calibrated',
    });
    expect(await thrown('a word')).toEqual({ error: 'a word' });
    expect(await thrown(new Error('y'.repeat(5_000)))).toEqual({ error: `${'y'.repeat(999)}…` });
    expect(await thrown(z.object({ zoom: z.number() }).safeParse({}).error)).toEqual({
      error: 'invalid reply from the device: zoom: Invalid input: expected number, received undefined',
    });
  });
});
