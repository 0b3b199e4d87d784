/** The books of the buffer over a restart: what left it is still counted, and they still add up. */
import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { page_bytes } from '../../../../src/kit/outbox/store/schema.ts';
import { openLab, type OutboxLab } from '../../../support/disk/outbox-lab.ts';
import { withDirectory } from '../../../support/temporary.ts';

/** Delivers what is sent at once, which never was on disk, and lets the rest be thinned and evicted. */
async function deliverAndDrop(lab: OutboxLab): Promise<void> {
  const { outbox } = lab;
  lab.connect();
  for (let n = 0; n < 20; n += 1) lab.send('feed', n);
  await lab.pump(
    (outgoing) => outbox.dispatch.acknowledged(outgoing, { hasSubscribers: true }),
    () => outbox.ledger().delivered === 20,
  );
  outbox.dispatch.disconnected();
  for (let n = 0; n < 400; n += 1) lab.send('feed', n);
  await outbox.flush();
}

test('delivered and dropped messages are counted over a restart, by reason, since the file was made', async () => {
  await withDirectory(async (dir) => {
    const began_ms = Date.now();
    const first = await openLab(dir, { limits: { rows_max: 100 } });
    await deliverAndDrop(first);
    await first.outbox.close();
    const left = first.outbox.ledger();
    expect(left).toMatchObject({ delivered: 20, balanced: true });
    expect(Object.values(left.dropped).reduce((sum, rows) => sum + rows, 0)).toBeGreaterThan(200);
    const { outbox } = await openLab(dir, { limits: { rows_max: 100 } });
    expect(outbox.ledger()).toEqual(left);
    expect(left.since_ms).toBeGreaterThanOrEqual(began_ms);
    expect(outbox.ledger().since_ms).toBe(left.since_ms);
    expect(outbox.ledgerOfRun()).toMatchObject({ accepted: left.buffered, delivered: 0, balanced: true });
    await outbox.close();
  });
});

/** Overwrites the page with the header and the schema. */
function spoil(file: string): void {
  const fd = openSync(file, 'r+');
  writeSync(fd, Buffer.alloc(page_bytes, 0xa5), 0, page_bytes, 0);
  closeSync(fd);
}

test('tasks that have ended are counted over a restart, as many as the journal has', async () => {
  await withDirectory(async (dir) => {
    const first = await openLab(dir);
    const task = { dispatch: '{}', result: '{}', received_ms: 1, updated_ms: 1, deadline_ms: null };
    for (const [at, state] of (['failed', 'completed', 'failed', 'pending'] as const).entries())
      await first.outbox.admit({ ...task, task_id: `${at}`, state });
    await first.outbox.close();
    const { outbox } = await openLab(dir);
    expect(outbox.opened.ended_tasks).toEqual({ completed: 1, failed: 2 });
    await outbox.close();
  });
});

test('they are kept when the file is damaged', async () => {
  await withDirectory(async (dir) => {
    const first = await openLab(dir, { limits: { rows_max: 100 } });
    await deliverAndDrop(first);
    const left = first.outbox.ledger();
    await first.outbox.close();
    spoil(join(dir, 'buffer.db'));
    const { outbox } = await openLab(dir, { limits: { rows_max: 100 } });
    expect(outbox.salvage).toMatchObject({ kind: 'damaged' });
    expect(outbox.ledger()).toMatchObject({ delivered: 20, dropped: left.dropped, balanced: true });
    expect(outbox.ledger().since_ms).toBe(left.since_ms);
    await outbox.close();
  });
});
