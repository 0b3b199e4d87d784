/** What "on disk" means: more waits than one commit takes, and whoever waits is told only when all of it is there. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { channels } from '../../../../src/contract/topics.ts';
import { eventually } from '../../../support/eventually.ts';
import { dispatchScene } from '../../../support/disk/dispatch-scene.ts';
import { countRows, taskEntry } from '../../../support/disk/store-lab.ts';

const completed = taskEntry();
const scene = dispatchScene();

const onDisk = () => countRows(join(scene.dir, 'buffer.db'));

function sendLarge(count: number, characters: number): void {
  const data = { pad: 'x'.repeat(characters) };
  for (let n = 0; n < count; n += 1)
    scene.lab.outbox.append({ lane: 'alarm', channel: 'event/a/motion', data });
}

describe('Outbox', () => {
  it('flushes more rows than one commit takes', async () => {
    for (let n = 0; n < 10_000; n += 1) scene.lab.send('alarm', n);
    await scene.lab.outbox.flush();
    expect(onDisk().alarm.rows).toBe(10_000);
  });

  it('writes everything before it closes, however large the messages are', async () => {
    sendLarge(120, 60_000);
    await scene.reopen();
    expect(onDisk().alarm.rows).toBe(120);
  });

  it('resolves committed() only when the last message accepted before is on disk', async () => {
    for (let n = 0; n < 5_000; n += 1) scene.lab.send('alarm', n);
    await scene.lab.outbox.committed();
    expect(onDisk().alarm.rows).toBe(5_000);
  });

  it('journals the end of a task never before its report', async () => {
    for (let n = 0; n < 9_000; n += 1) scene.lab.send('alarm', n);
    const report = {
      lane: 'task',
      channel: channels.task(completed.task_id),
      data: { status: 'completed' },
    } as const;
    await scene.lab.outbox.record(completed, report);
    expect(onDisk().task.rows).toBe(1);
    const with_entry = scene.disk.commits.filter(({ journal }) => journal.length > 0);
    expect(with_entry).toHaveLength(1);
    expect(with_entry[0]?.rows.some(({ channel }) => channel === report.channel)).toBe(true);
  });

  it('detects that disk writes resumed although there is nothing to write', async () => {
    scene.disk.refuse();
    scene.lab.connect();
    scene.lab.send('alarm', 1);
    await scene.failing();
    await scene.lab.pump(scene.heard);
    expect(scene.lab.outbox.ledger()).toMatchObject({ buffered: 0, delivered: 1 });
    scene.disk.heal();
    await eventually('ok again', () => scene.lab.outbox.health().state === 'ok');
  });
});
