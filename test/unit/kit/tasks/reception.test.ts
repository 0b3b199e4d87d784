/** What becomes of a dispatch when it arrives. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { useFakeTime } from '../../../support/fake-time.ts';
import { commit_ms, iso, pass, startLab } from '../../../support/kit/task-lab.ts';
import { texts } from '../../../../src/kit/tasks/texts.ts';

useFakeTime();

const meta = (task_id_in_topic: string) => ({ task_id_in_topic, retained: false, duplicate: false });

describe('a dispatch', () => {
  it('is acknowledged only once it is journaled as pending, and starts only once it is journaled as running', async () => {
    const lab = startLab();
    let acknowledged = false;
    const { id, taken } = lab.send();
    void taken.then(() => (acknowledged = true));
    await pass(commit_ms - 1);
    expect(acknowledged).toBe(false);
    await pass(1);
    expect(acknowledged).toBe(true);
    expect(lab.disk.entry(id)).toMatchObject({ state: 'pending' });
    await pass(commit_ms - 1);
    expect(lab.kit.invocations).toHaveLength(0);
    await pass(1);
    expect(lab.disk.entry(id)).toMatchObject({ state: 'running' });
    expect(lab.kit.invocations).toHaveLength(1);
    await lab.succeed({ angle: 3 });
    expect(lab.disk.reports(id).map(({ status, result }) => ({ status, result }))).toEqual([
      { status: 'running', result: {} },
      { status: 'completed', result: { angle: 3 } },
    ]);
    expect(lab.disk.entry(id)).toMatchObject({ state: 'completed', result: '{"angle":3}' });
  });

  it('runs once when it comes again while it is open or over, and the final report is sent again', async () => {
    const lab = startLab();
    const id = await lab.give({ n: 7 });
    await lab.give({ task_id: id, n: 7 });
    expect(lab.kit.invocations).toHaveLength(1);
    await lab.succeed();
    await lab.give({ task_id: id, n: 7 });
    await lab.give({ task_id: id.toUpperCase(), n: 7 });
    expect(lab.kit.invocations).toHaveLength(1);
    const [, first, ...again] = lab.disk.reports(id);
    expect(again).toEqual([first, first]);
  });

  it('runs once when it comes twice before the journal has answered, and both copies are acknowledged together', async () => {
    const lab = startLab();
    const { id, taken } = lab.send();
    const second = lab.send({ task_id: id });
    await pass(2 * commit_ms);
    await Promise.all([taken, second.taken]);
    expect(lab.kit.invocations).toHaveLength(1);
    await lab.succeed();
  });

  it('is the same from bytes as from text', async () => {
    const lab = startLab();
    const id = randomUUID();
    const body = {
      task_id: id,
      asset_id: lab.kit.camera.id,
      command_name: 'work',
      created_at: iso(Date.now()),
    };
    void lab.runner.receive(new TextEncoder().encode(JSON.stringify(body)), meta(id));
    await pass(2 * commit_ms);
    await lab.succeed();
    expect(lab.last(id)).toMatchObject({
      status: 'completed',
      command_name: 'work',
      asset_id: lab.kit.camera.id,
    });
  });

  it('is refused once the connector stops, so that it is delivered again', async () => {
    const lab = startLab();
    lab.end.abort();
    await expect(lab.send().taken).rejects.toThrow(texts.stopping_refused);
    expect(lab.disk.drafts).toEqual([]);
  });
});

describe('a dispatch that cannot be read', () => {
  const refused = async (raw: unknown): Promise<unknown> => {
    const lab = startLab();
    const id = randomUUID();
    void lab.runner.receive(raw, meta(id));
    await pass(2 * commit_ms);
    expect(lab.disk.entry(id)).toMatchObject({ state: 'failed' });
    expect(lab.disk.reports(id)).toMatchObject([{ status: 'failed', asset_id: null, command_name: null }]);
    return lab.error(id);
  };

  it('fails with a sentence that names the key', async () => {
    expect(await refused({ command_name: 'work' })).toMatch(
      /^the dispatch is invalid: task_id: .*asset_id: /u,
    );
  });

  it('fails when it is not JSON, not UTF-8, or too large', async () => {
    expect(await refused('{"task_id":')).toMatch(/^the dispatch is not JSON: /u);
    expect(await refused(Uint8Array.of(0xff, 0xfe))).toMatch(/^the dispatch is not JSON: /u);
    expect(await refused(JSON.stringify('x'.repeat(70_000)))).toBe(
      'the dispatch has 70002 characters; the limit is 65536',
    );
  });

  it('and whose topic holds no task id is counted and not answered', async () => {
    const lab = startLab();
    await lab.runner.receive('{}', meta('not-a-uuid'));
    expect(lab.runner.stats()).toMatchObject({ unreadable: 1, failed: 0 });
    expect(lab.disk.drafts).toEqual([]);
    expect(lab.log.at('warn')).toEqual([texts.no_task_id]);
  });
});

describe('a dispatch that is not carried out', () => {
  it('because its task id is not that of its topic names both', async () => {
    const lab = startLab();
    const [topic, body] = [randomUUID(), randomUUID()];
    const dispatch = {
      task_id: body,
      asset_id: lab.kit.drone.id,
      command_name: 'work',
      created_at: iso(Date.now()),
    };
    void lab.runner.receive(dispatch, meta(topic));
    await pass(2 * commit_ms);
    expect(lab.error(topic)).toBe(`task_id: ${body} in the dispatch, ${topic} in the topic`);
    expect(lab.disk.reports(body)).toEqual([]);
    expect(lab.kit.invocations).toHaveLength(0);
  });

  it('because it was retained fails as expired, also when it comes again', async () => {
    const lab = startLab();
    const id = await lab.give({ retained: true });
    await lab.give({ task_id: id, retained: true });
    expect(lab.kit.invocations).toHaveLength(0);
    expect(lab.disk.reports(id)).toHaveLength(2);
    expect(lab.error(id)).toBe(
      'expired: a retained dispatch is refused, since the broker repeats it at each connect; command not sent',
    );
  });

  it('because the asset or the command is unknown names it', async () => {
    const lab = startLab();
    expect(lab.error(await lab.give({ command: 'juggle' }))).toBe('Falcon 1 has no command "juggle"');
    lab.kit.drone.announced = false;
    expect(lab.error(await lab.give())).toBe('no asset of this kit has this id');
  });

  it('is acknowledged only once its report is on disk', async () => {
    const lab = startLab();
    const { id, taken } = lab.send({ command: 'juggle' });
    let heard: number | undefined;
    void taken.then(() => (heard = lab.disk.reports(id).length));
    await pass(2 * commit_ms);
    expect(heard).toBe(1);
  });

  it('because its asset is offline names the asset', async () => {
    const lab = startLab();
    lab.kit.drone.online = false;
    expect(lab.error(await lab.give())).toBe('Falcon 1 is offline; command not sent');
  });

  it('because of its payload names the key, and starts nothing', async () => {
    const lab = startLab();
    const id = await lab.give({ payload: { speed: 2 } });
    expect(lab.error(id)).toBe('payload.speed: Too big: expected number to be <=1 (knots)');
    expect(lab.disk.reports(id)).toHaveLength(1);
    expect(lab.kit.invocations).toHaveLength(0);
    expect(lab.error(await lab.give({ payload: { n: 1, colour: 'red' } }))).toBe(
      'payload: Unrecognized key: "colour"',
    );
  });

  it('because it is late reports how late', async () => {
    const lab = startLab();
    const id = await lab.give({ created_at: iso(Date.now() - 15_000) });
    expect(lab.error(id)).toBe("expired: its deadline passed 5 s ago by the kit's clock; command not sent");
  });

  it('keeps its answer when the reason is gone by the second delivery', async () => {
    const lab = startLab();
    lab.kit.drone.online = false;
    const id = await lab.give();
    lab.kit.drone.online = true;
    await lab.give({ task_id: id });
    expect(lab.kit.invocations).toHaveLength(0);
    expect(lab.disk.reports(id).map(({ status }) => status)).toEqual(['failed', 'failed']);
    expect(lab.runner.stats()).toMatchObject({ failed: 1 });
  });
});

describe('while the clock is not set', () => {
  it('the dispatches themselves show how late it is: one that a later one makes stale is refused', async () => {
    const lab = startLab();
    lab.kit.synced = false;
    lab.kit.jump_ms = -7_200_000;
    const older = iso(Date.now() - 3_600_000);
    const first = await lab.give({ created_at: older, n: 1 });
    expect(lab.kit.last.n).toBe(1);
    await lab.succeed();
    await lab.give({ created_at: iso(Date.now()), n: 2 });
    await lab.succeed();
    const late = await lab.give({ created_at: older, n: 3 });
    expect(lab.error(late)).toMatch(
      /^expired: its deadline passed 3590 s ago by dispatches that were created later/u,
    );
    expect(lab.last(first)).toMatchObject({ status: 'completed' });
    expect(lab.kit.invocations.map(({ n }) => n)).toEqual([1, 2]);
  });
});
