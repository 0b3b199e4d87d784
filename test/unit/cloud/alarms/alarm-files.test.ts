/** Files at the alarms that they show, in the tables of both databases. */
import { expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/contract/json.ts';
import { channels } from '../../../../src/contract/topics.ts';
import { lasting_states } from '../../../../src/cloud/api/alarm-resources.ts';
import { webhookBodies } from '../../../../src/cloud/api/webhook-resources.ts';
import { sqlStore } from '../../../../src/cloud/store/sql-store.ts';
import { asset_id, kit_id, samples } from '../../../support/contract-samples.ts';
import { onEachDatabase } from '../each-database.ts';
import { addHook, received } from '../story.ts';

const [first, second] = ['4c7e2a90-6b1d-4f3a-8e52-9d0c1b2a3f48', '5c7e2a90-6b1d-4f3a-8e52-9d0c1b2a3f48'];
const now_ms = Date.UTC(2026, 10, 21, 12);
const at = (ms: number): string => new Date(now_ms + ms).toISOString();

onEachDatabase('files of alarms', (open) => {
  async function lab() {
    const store = sqlStore(await open());
    let seq = 0;
    const take = async (channel: string, data: JsonObject, ms = 0): Promise<readonly string[]> => {
      seq += 1;
      const { changes } = await store.commit(
        [received({ channel, seq, data, time_ms: now_ms + ms })],
        now_ms + ms,
      );
      return changes.map(({ kind }) => kind);
    };
    const motion = async (detected: boolean, ms = 0): Promise<readonly string[]> =>
      take(channels.event(asset_id, 'motion'), { detected, timestamp: at(ms) }, ms);
    const file = async (id: string, more: JsonObject = {}, ms = 0): Promise<readonly string[]> =>
      take(
        channels.file(id),
        {
          ...samples['fileReport'],
          id,
          at: at(ms),
          alarms: [{ feed: 'motion', timestamp: at(ms) }],
          ...more,
        },
        ms,
      );
    const filesOfAlarms = async (): Promise<readonly (readonly string[])[]> => {
      const states = [...lasting_states, 'closed'] as const;
      const found = await store.alarms({ kits: [kit_id], states, limit: 10, now_ms: now_ms + 1 });
      return found.map(({ files }) => files);
    };
    return { store, motion, file, filesOfAlarms };
  }

  it('attach themselves when they come later, the newest first, and show the alarm as changed', async () => {
    const { motion, file, filesOfAlarms } = await lab();
    await motion(true);
    expect(await file(first)).toEqual(['file', 'alarm']);
    expect(await file(first, { state: 'requesting' })).toEqual([]);
    await motion(false, 60_000);
    await motion(true, 120_000);
    await file(second, {}, 120_000);
    expect(await filesOfAlarms()).toEqual([[second, first]]);
  });

  it('attach themselves when they came before, as with replicas', async () => {
    const { motion, file, filesOfAlarms } = await lab();
    await file(first);
    await motion(true);
    expect(await filesOfAlarms()).toEqual([[first]]);
  });

  it('attach themselves hours later to the alarm of their time, which is over', async () => {
    const { motion, file, filesOfAlarms } = await lab();
    await motion(true);
    await motion(false, 60_000);
    await file(first, { alarms: [{ feed: 'motion', timestamp: at(30_000) }] }, 7_200_000);
    expect(await filesOfAlarms()).toEqual([[first]]);
  });

  it('stay apart from alarms of other assets, events and times', async () => {
    const { motion, file, filesOfAlarms } = await lab();
    await motion(true);
    await file(first, { asset_id: null });
    await file(second, { alarms: [{ feed: 'tamper', timestamp: at(0) }] });
    await file('6c7e2a90-6b1d-4f3a-8e52-9d0c1b2a3f48', {
      alarms: [{ feed: 'motion', timestamp: at(-3_600_000) }],
    });
    expect(await filesOfAlarms()).toEqual([[]]);
  });

  it('are announced to webhooks once their content is here, with the alarms that they show', async () => {
    const { store, motion, file } = await lab();
    await addHook(store, { types: ['file'] });
    await motion(true);
    await file(first);
    await store.fileStored({ kit_id, file_id: first }, now_ms);
    const [alarm] = await store.alarms({ kits: [kit_id], states: ['open'], limit: 1, now_ms });
    const query = { webhook_id: 'hook', limit: 2, now_ms, lease_ms: now_ms + 1, lease: 'lease' };
    const messages = await store.claimMessages(query);
    expect(messages).toHaveLength(1);
    const body: unknown = JSON.parse(messages[0]?.body ?? '');
    expect(webhookBodies.file.safeParse(body).error).toBeUndefined();
    expect(body).toMatchObject({
      type: 'file',
      data: { kit_id, file: { id: first, state: 'stored' }, alarms: [alarm?.alarm_id] },
    });
  });
});
