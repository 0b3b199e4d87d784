/** Who asked for a task, and by which way: in its reports, in the journal, and over a restart. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { useFakeTime } from '../../../support/fake-time.ts';
import { commit_ms, type Lab, pass, startLab } from '../../../support/kit/task-lab.ts';

useFakeTime();

const requested_by = '00000000-0000-4000-8000-0000000000aa';

async function origins(lab: Lab, id: string): Promise<unknown> {
  await lab.succeed();
  const [running, completed] = lab.disk.reports(id);
  expect(completed?.origin).toEqual(running?.origin);
  expect((await lab.runner.find(id))?.origin).toEqual(running?.origin);
  return running?.origin;
}

describe('the origin of a task', () => {
  it('is the cloud for a dispatch from the broker, with the name that the dispatch gives', async () => {
    const lab = startLab();
    const id = await lab.give({ requested_by, requested_by_name: 'control room' });
    const origin = { via: 'cloud', user: 'control room', uid: null, requested_by };
    expect(await origins(lab, id)).toEqual(origin);
  });

  it('is the user of the gateway, or the key of its service', async () => {
    const lab = startLab();
    const local = await lab.give({ author: { via: 'local', user: 'maria', uid: 1001 } });
    expect(await origins(lab, local)).toEqual({ via: 'local', user: 'maria', uid: 1001, requested_by: null });
    const asset = lab.kit.camera;
    const service = await lab.give({
      asset,
      requested_by,
      author: { via: 'service', user: 'page', uid: null },
    });
    expect(await origins(lab, service)).toEqual({ via: 'service', user: 'page', uid: null, requested_by });
  });

  it('comes with the payload in the first and the last report, and not with progress', async () => {
    const lab = startLab();
    const payload = { n: 7 };
    const id = await lab.give({ payload });
    lab.kit.last.context.progress('half', 50);
    await lab.succeed();
    const reports = lab.disk.reports(id);
    expect(reports.filter((each) => each.progress === undefined).map((each) => each.payload)).toEqual([
      payload,
      payload,
    ]);
    expect(reports.filter((each) => each.progress).map((each) => each.payload)).toEqual([undefined]);
    expect(reports[0]?.created_at).toMatch(/Z$/u);
  });

  it('comes without a payload where a refused dispatch is too long to keep, also when it is sent again', async () => {
    const lab = startLab();
    const id = await lab.give({ command: 'juggle', payload: { text: 'x'.repeat(20_000) } });
    expect(lab.last(id)).toMatchObject({ status: 'failed' });
    expect(lab.last(id)?.payload).toBeUndefined();
    const short = await lab.give({ command: 'juggle', payload: { text: 'x' } });
    expect(lab.last(short)?.payload).toEqual({ text: 'x' });
  });

  it('cannot be claimed by the dispatch itself', async () => {
    const lab = startLab();
    const id = randomUUID();
    const body = {
      task_id: id,
      asset_id: lab.kit.drone.id,
      command_name: 'work',
      created_at: new Date().toISOString(),
      origin: { via: 'local', user: 'root', uid: 0, requested_by: null },
    };
    void lab.runner.receive(body, { task_id_in_topic: id, retained: false, duplicate: false });
    await pass(2 * commit_ms);
    expect(await origins(lab, id)).toMatchObject({ via: 'cloud', user: null, uid: null });
  });

  it('is in the report of a dispatch that is refused or cannot be read', async () => {
    const lab = startLab();
    const refused = await lab.give({ command: 'juggle', requested_by });
    expect(lab.last(refused)).toMatchObject({ status: 'failed', origin: { via: 'cloud', requested_by } });
    const id = randomUUID();
    void lab.runner.receive('{', { task_id_in_topic: id, retained: false, duplicate: false });
    await pass(2 * commit_ms);
    expect(lab.last(id)).toMatchObject({ status: 'failed', origin: { via: 'cloud', requested_by: null } });
  });

  it('is kept over a restart', async () => {
    const lab = startLab();
    const author = { via: 'local', user: 'maria', uid: 1001 } as const;
    const id = await lab.give({ author });
    lab.kill();
    const next = startLab({ disk: lab.disk, kit: lab.kit });
    next.runner.resume();
    await pass(commit_ms);
    expect(next.last(id)).toMatchObject({ status: 'failed', origin: { ...author, requested_by: null } });
  });
});

it('a refused dispatch is journaled without what it would carry out, if that is long', async () => {
  const lab = startLab();
  const id = await lab.give({ command: 'juggle', payload: { text: 'x'.repeat(20_000) } });
  expect(lab.disk.entry(id)?.dispatch.length).toBeLessThan(1_000);
  expect(await lab.runner.find(id)).toMatchObject({ status: 'failed', command_name: 'juggle', payload: {} });
});
