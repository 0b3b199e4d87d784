/** Who asked for a task that was made on the kit, and with which payload: as reported, and never invented. */
import { expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/contract/json.ts';
import { channels } from '../../../../src/contract/topics.ts';
import { taskResource } from '../../../../src/cloud/api/views.ts';
import { sqlStore } from '../../../../src/cloud/store/sql-store.ts';
import { asset_id, kit_id, task_id } from '../../../support/contract-samples.ts';
import { onEachDatabase } from '../each-database.ts';
import { received, report, start_ms } from '../story.ts';

const requester = '00000000-0000-4000-8000-0000000000aa';
const payload = { lat: 47.4, lon: 8.5, alt_m: 500 };
const created_at = '2026-11-21T09:59:58.000Z';
const origin = { via: 'service', user: 'truck crew', uid: null, requested_by: requester };

onEachDatabase('a task that was made on the kit', (open) => {
  async function shown(...reports: readonly JsonObject[]): Promise<object> {
    const store = sqlStore(await open());
    for (const [at, data] of reports.entries()) {
      await store.commit(
        [received({ channel: channels.task(task_id), seq: at + 1, data })],
        start_ms + 60_000,
      );
    }
    const task = await store.task(kit_id, task_id);
    if (!task) throw new Error('the task is not stored');
    return taskResource(task);
  }

  it('has the payload, the author and the time of its dispatch', async () => {
    const task = await shown({ ...report('running', 1), origin, payload, created_at });
    expect(task).toMatchObject({
      payload,
      requested_by: requester,
      requested_by_name: 'truck crew',
      created_at,
      status: 'running',
    });
  });

  it('takes them from the last report when progress arrives first', async () => {
    const running = { ...report('running', 2), origin, progress: { message: 'on the way', pct: 10 } };
    const task = await shown(running, { ...report('completed', 3), origin, payload, created_at });
    expect(task).toMatchObject({ payload, requested_by: requester, status: 'completed' });
  });

  it('has no requester where a technician asked, and no payload where an older kit did not report it', async () => {
    const local = { via: 'local', user: 'maria', uid: 1001, requested_by: null };
    const task = await shown({ ...report('running', 1), origin: local });
    expect(task).toMatchObject({ asset_id, requested_by_name: 'maria' });
    expect(Object.keys(task)).not.toContain('requested_by');
    expect(Object.keys(task)).not.toContain('payload');
    const old = await shown(report('completed', 1));
    expect(Object.keys(old).filter((key) => key.startsWith('requested_by'))).toEqual([]);
  });
});
