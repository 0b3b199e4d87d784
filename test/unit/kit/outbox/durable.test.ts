/** What "on disk" means: more waits than one commit takes, and whoever waits is told only when all of it is there. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { channels } from '../../../../src/contract/topics.ts';
import { eventually } from '../../../support/eventually.ts';
import { FaultyDisk } from '../../../support/disk/faulty-disk.ts';
import { openLab, type OutboxLab } from '../../../support/disk/outbox-lab.ts';
import { countRows } from '../../../support/disk/store-lab.ts';
import { makeDirectory } from '../../../support/temporary.ts';
import { texts } from '../../../../src/kit/outbox/texts.ts';

const task_id = '00000000-0000-4000-8000-0000000000aa';
const completed = {
  task_id,
  state: 'completed',
  dispatch: '{}',
  result: '{}',
  received_ms: 1,
  updated_ms: 2,
  deadline_ms: null,
} as const;

let dir: string;
let disk: FaultyDisk;
let lab: OutboxLab;

beforeEach(async () => {
  dir = await makeDirectory();
  disk = new FaultyDisk();
  lab = await openLab(dir, { disk });
});
afterEach(async () => {
  disk.heal();
  await lab.outbox.close();
  await rm(dir, { recursive: true });
});

const onDisk = () => countRows(join(dir, 'buffer.db'));

function sendLarge(count: number, characters: number): void {
  const data = { pad: 'x'.repeat(characters) };
  for (let n = 0; n < count; n += 1) lab.outbox.append({ lane: 'alarm', channel: 'event/a/motion', data });
}

describe('Outbox', () => {
  it('flushes more rows than one commit takes', async () => {
    for (let n = 0; n < 10_000; n += 1) lab.send('alarm', n);
    await lab.outbox.flush();
    expect(onDisk().alarm.rows).toBe(10_000);
  });

  it('writes everything before it closes, however large the messages are', async () => {
    sendLarge(120, 60_000);
    await lab.outbox.close();
    expect(onDisk().alarm.rows).toBe(120);
    lab = await openLab(dir);
  });

  it('resolves committed() only when the last message accepted before is on disk', async () => {
    for (let n = 0; n < 5_000; n += 1) lab.send('alarm', n);
    await lab.outbox.committed();
    expect(onDisk().alarm.rows).toBe(5_000);
  });

  it('journals the end of a task never before its report', async () => {
    for (let n = 0; n < 9_000; n += 1) lab.send('alarm', n);
    const report = { lane: 'task', channel: channels.task(task_id), data: { status: 'completed' } } as const;
    await lab.outbox.record(completed, report);
    expect(onDisk().task.rows).toBe(1);
    const with_entry = disk.commits.filter(({ journal }) => journal.length > 0);
    expect(with_entry).toHaveLength(1);
    expect(with_entry[0]?.rows.some(({ channel }) => channel === report.channel)).toBe(true);
  });

  it('logs how many messages a clean stop could not write', async () => {
    disk.refuse();
    for (let n = 0; n < 3; n += 1) lab.send('alarm', n);
    await lab.outbox.close();
    expect(lab.lines).toContain(texts.not_written);
    disk.heal();
    lab = await openLab(dir);
  });

  it('detects that disk writes resumed although there is nothing to write', async () => {
    disk.refuse();
    lab.connect();
    lab.send('alarm', 1);
    await eventually('failing', () => lab.outbox.health().state === 'failing');
    await lab.pump((outgoing) => lab.outbox.dispatch.acknowledged(outgoing, { hasSubscribers: true }));
    expect(lab.outbox.ledger()).toMatchObject({ buffered: 0, delivered: 1 });
    disk.heal();
    await eventually('ok again', () => lab.outbox.health().state === 'ok');
  });
});
