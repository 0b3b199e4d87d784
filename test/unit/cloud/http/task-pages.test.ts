/** Lists of tasks whose results are large: pages of limited size, of which the service holds each until its client has read it. */
import { expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { assetId } from '../../../../src/contract/identity.ts';
import { channels } from '../../../../src/contract/topics.ts';
import { latestTasks } from '../../../../src/cloud/task-pages.ts';
import { kit_id } from '../../../support/contract-samples.ts';
import { startServiceLab } from '../../../support/service/service-lab.ts';
import { report } from '../story.ts';

const count = 20;
const chars = 250_000;
const page = z.looseObject({
  tasks: z.array(z.looseObject({ id: z.string() })),
  next_cursor: z.string().optional(),
});

const ids = Array.from({ length: count }, (_, n) => assetId(kit_id, `task-${n}`));

async function publishLarge({ publish }: Pick<Awaited<ReturnType<typeof startServiceLab>>, 'publish'>) {
  for (const task_id of ids) {
    const result = { text: 'x'.repeat(chars) };
    await publish(channels.task(task_id), { ...report('completed', 1), task_id, result });
  }
}

it('are all among the latest ones that a replica sends again', async () => {
  const lab = await startServiceLab(kit_id);
  onTestFinished(async () => lab.stop());
  await publishLarge(lab);
  const found = await latestTasks(lab.store, kit_id, count);
  expect(found.map(({ task_id }) => task_id).sort()).toEqual([...ids].sort());
  expect(await latestTasks(lab.store, kit_id, 3)).toEqual(found.slice(0, 3));
});

it(
  'has each task in one of the pages, none of which is much larger than the limit',
  { tags: 'long' },
  async () => {
    const lab = await startServiceLab(kit_id);
    onTestFinished(async () => lab.stop());
    await publishLarge(lab);
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const query = `limit=200${cursor === undefined ? '' : `&cursor=${cursor}`}`;
      const answer = await fetch(`${lab.url}/api/kits/${kit_id}/tasks?${query}`, {
        headers: { 'x-api-key': lab.key },
      });
      const text = await answer.text();
      expect(text.length).toBeLessThan(2_500_000);
      const { tasks, next_cursor } = page.parse(JSON.parse(text));
      seen.push(...tasks.map(({ id }) => id));
      cursor = next_cursor;
    } while (cursor !== undefined);
    expect(seen.sort()).toEqual([...ids].sort());
  },
);
