/** The disk refuses every write: messages go on from memory, and nothing waits for the disk. Where it answers none: disk-silent.test.ts. */
import { rm } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { memory_rows_max, unchecked_rows_max } from '../../../../../src/kit/outbox/live/memory-limit.ts';
import type { OutgoingMessage } from '../../../../../src/kit/outbox/live/outgoing.ts';
import { eventually } from '../../../../support/eventually.ts';
import { FaultyDisk } from '../../../../support/disk/faulty-disk.ts';
import { messagesIn, openLab, type OutboxLab } from '../../../../support/disk/outbox-lab.ts';
import { makeDirectory } from '../../../../support/temporary.ts';

let dir: string;
let disk: FaultyDisk;
let lab: OutboxLab;

beforeEach(async () => {
  dir = await makeDirectory();
  disk = new FaultyDisk();
  lab = await openLab(dir, { disk });
});
afterEach(async () => {
  expect(lab.outbox.ledger().balanced).toBe(true);
  disk.heal();
  await lab.outbox.close();
  await rm(dir, { recursive: true });
});

const heard = (outgoing: OutgoingMessage): void =>
  lab.outbox.dispatch.acknowledged(outgoing, { hasSubscribers: true });
const failing = async (): Promise<void> =>
  eventually('failing', () => lab.outbox.health().state === 'failing');
const next = (): OutgoingMessage | undefined => lab.outbox.dispatch.next({ backlog: true });

describe('Outbox while disk writes fail', () => {
  beforeEach(async () => {
    disk.refuse();
    lab.connect();
    lab.send('alarm', 0);
    await failing();
    await lab.pump(heard, () => lab.outbox.ledger().delivered === 1);
  });

  it('sends an alarm at once', () => {
    lab.send('alarm', 1);
    const outgoing = next();
    expect(outgoing && messagesIn(outgoing)[0]?.data).toEqual({ n: 1 });
  });

  it('sends an alarm from before the connection as soon as it is connected', () => {
    lab.outbox.dispatch.disconnected();
    lab.send('alarm', 1);
    expect(next()).toBeUndefined();
    lab.connect();
    expect(next()?.lane).toBe('alarm');
  });

  it('limits memory, drops the oldest of the least important lanes first and keeps task reports', async () => {
    lab.outbox.dispatch.disconnected();
    for (let n = 0; n < 200; n += 1) lab.send('task', n, `t${n}`);
    for (let n = 0; n < 15_000; n += 1) lab.send('feed', n);
    await eventually('the limit is kept', () => lab.outbox.ledger().buffered <= 10_000);
    expect(lab.outbox.depth().get('task')?.memory_rows).toBe(200);
    expect(lab.outbox.ledger().dropped).toMatchObject({ memory_full: 5_200 });
  });

  it('limits memory while a burst is accepted, before anything else has a turn', () => {
    lab.outbox.dispatch.disconnected();
    for (let n = 0; n < 30_000; n += 1) {
      lab.send('feed', n);
      expect(lab.outbox.ledger().buffered).toBeLessThanOrEqual(memory_rows_max + unchecked_rows_max);
    }
  });

  it('limits the memory of large messages in the same way', { tags: 'long' }, () => {
    lab.outbox.dispatch.disconnected();
    const text = 'x'.repeat(200_000);
    for (let n = 0; n < 250; n += 1)
      lab.outbox.append({ lane: 'feed', channel: 'feed/a/gps', data: { text } });
    expect(lab.outbox.ledger().buffered * text.length).toBeLessThan(40 * 1024 * 1024);
  });

  it('reports drops from memory after a restart', async () => {
    lab.outbox.dispatch.disconnected();
    for (let n = 0; n < 15_000; n += 1) lab.send('feed', n);
    await eventually('the limit is kept', () => lab.outbox.ledger().buffered <= 10_000);
    disk.heal();
    await lab.outbox.close();
    lab = await openLab(dir);
    const [drop, ...more] = lab.outbox.opened.drops;
    expect(drop).toMatchObject({ lane: 'feed', reason: 'memory_full', rows: 5_000 });
    expect(more).toEqual([]);
  });
});

describe('Alarm that was sent from memory while disk writes fail', () => {
  let seq: number;
  beforeEach(async () => {
    disk.refuse();
    lab.connect({ ack: 'cloud' });
    seq = lab.send('alarm', 1);
    await failing();
    const sent = await lab.pump(heard, () => lab.outbox.dispatch.live_rows === 0);
    expect(sent).toHaveLength(1);
  });
  const alarms = (): number | undefined => lab.outbox.depth().get('alarm')?.rows;

  it('is written after disk writes resume and kept until the cloud acknowledges it', async () => {
    disk.heal();
    await eventually('on disk', () => alarms() === 1);
    expect(lab.outbox.ledger().delivered).toBe(0);
    expect(await lab.pump(heard)).toEqual([]);
    lab.outbox.confirm({ epoch: lab.outbox.epoch, ranges: [[seq, seq]] });
    await eventually('released', () => lab.outbox.ledger().delivered === 1);
    expect(alarms()).toBe(0);
  });

  it('is not written when the cloud acknowledges it before', async () => {
    lab.outbox.confirm({ epoch: lab.outbox.epoch, ranges: [[seq, seq]] });
    expect(lab.outbox.ledger()).toMatchObject({ delivered: 1, buffered: 0 });
    disk.heal();
    await eventually('disk writes resumed', () => lab.outbox.health().state === 'ok');
    expect(disk.commits.flatMap(({ rows }) => rows)).toEqual([]);
  });
});

describe('Outbox whose live queue is full while disk writes fail', () => {
  it('sends all alarms over the same connection after disk writes resume', { tags: 'long' }, async () => {
    lab.connect();
    for (let n = 0; n < 5_000; n += 1) lab.send('alarm', n);
    await eventually('the queue is full', () => lab.outbox.dispatch.live_rows >= 4_096);
    disk.refuse();
    for (let n = 5_000; n < 5_010; n += 1) lab.send('alarm', n);
    await failing();
    await disk.refusedAgain();
    disk.heal();
    await lab.pump(heard, () => lab.outbox.ledger().delivered >= 5_010);
    await eventually('empty', () => lab.outbox.ledger().buffered === 0);
  });
});

describe('Outbox that reconnects while disk writes fail', () => {
  it('sends messages in flight over the new connection after disk writes resume', async () => {
    for (let n = 0; n < 300; n += 1) lab.send('task', n, `t${n}`);
    await lab.outbox.flush();
    lab.connect();
    await lab.pump(
      () => undefined,
      () => lab.outbox.depth().get('task')?.rows === 300 && next() !== undefined,
    );
    lab.outbox.dispatch.disconnected();
    disk.refuse();
    lab.send('alarm', 1);
    await failing();
    lab.connect();
    await disk.refusedAgain();
    disk.heal();
    await lab.pump(heard, () => lab.outbox.ledger().delivered === 301);
    await eventually('empty', () => lab.outbox.ledger().buffered === 0);
  });
});

describe('Cloud acknowledgement while the disk fails or hangs', () => {
  it('is accepted without waiting and applied after disk writes resume', async () => {
    lab.connect({ ack: 'cloud' });
    const seqs = Array.from({ length: 50 }, (_, n) => lab.send('alarm', n));
    await lab.pump(
      heard,
      () => lab.outbox.depth().get('alarm')?.rows === 50 && lab.outbox.dispatch.live_rows === 0,
    );
    await lab.outbox.committed();
    disk.hang();
    // Not asynchronous: nothing can have waited for the disk, which answers nothing.
    for (const seq of seqs) lab.outbox.confirm({ epoch: lab.outbox.epoch, ranges: [[seq, seq]] });
    expect(lab.outbox.ledger().delivered).toBe(0);
    disk.heal();
    await eventually('all are released', () => lab.outbox.ledger().delivered === 50);
  });

  it('is applied when it was the only thing that the disk refused', async () => {
    lab.connect({ ack: 'cloud' });
    const seq = lab.send('alarm', 1);
    await lab.pump(
      heard,
      () => lab.outbox.depth().get('alarm')?.rows === 1 && lab.outbox.dispatch.live_rows === 0,
    );
    await lab.outbox.committed();
    disk.refuse();
    lab.outbox.confirm({ epoch: lab.outbox.epoch, ranges: [[seq, seq]] });
    await failing();
    disk.heal();
    await eventually('disk writes resumed', () => lab.outbox.health().state === 'ok');
    await eventually('it is released', () => lab.outbox.ledger().delivered === 1);
  });

  it('releases a message even if it arrives before the PUBACK', async () => {
    lab.connect({ ack: 'cloud' });
    const seq = lab.send('alarm', 1);
    let outgoing: OutgoingMessage | undefined;
    await eventually('it is handed out', () => (outgoing = next()) !== undefined);
    lab.outbox.confirm({ epoch: lab.outbox.epoch, ranges: [[seq, seq]] });
    await lab.outbox.committed();
    if (outgoing) heard(outgoing);
    await eventually('it is released', () => lab.outbox.ledger().delivered === 1);
    expect(lab.outbox.depth().get('alarm')?.rows).toBe(0);
  });
});
