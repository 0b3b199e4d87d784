/** The disk refuses every write: messages go on from memory, and nothing waits for the disk. Where it answers none: disk-silent.test.ts. */
import { beforeEach, describe, expect, it } from 'vitest';
import { memory_rows_max, unchecked_rows_max } from '../../../../../src/kit/outbox/live/memory-limit.ts';
import type { OutgoingMessage } from '../../../../../src/kit/outbox/live/outgoing.ts';
import { eventually } from '../../../../support/eventually.ts';
import { dispatchScene } from '../../../../support/disk/dispatch-scene.ts';
import { messagesIn } from '../../../../support/disk/outbox-lab.ts';

const scene = dispatchScene();
const { heard, next, failing } = scene;

describe('Outbox while disk writes fail', () => {
  beforeEach(async () => {
    scene.disk.refuse();
    scene.lab.connect();
    scene.lab.send('alarm', 0);
    await failing();
    await scene.lab.pump(heard, () => scene.lab.outbox.ledger().delivered === 1);
  });

  it('sends an alarm at once', () => {
    scene.lab.send('alarm', 1);
    const outgoing = next();
    expect(outgoing && messagesIn(outgoing)[0]?.data).toEqual({ n: 1 });
  });

  it('sends an alarm from before the connection as soon as it is connected', () => {
    scene.lab.outbox.dispatch.disconnected();
    scene.lab.send('alarm', 1);
    expect(next()).toBeUndefined();
    scene.lab.connect();
    expect(next()?.lane).toBe('alarm');
  });

  it('limits memory, drops the oldest of the least important lanes first and keeps task reports', async () => {
    scene.lab.outbox.dispatch.disconnected();
    for (let n = 0; n < 200; n += 1) scene.lab.send('task', n, `t${n}`);
    for (let n = 0; n < 15_000; n += 1) scene.lab.send('feed', n);
    await eventually('the limit is kept', () => scene.lab.outbox.ledger().buffered <= 10_000);
    expect(scene.lab.outbox.depth().get('task')?.memory_rows).toBe(200);
    expect(scene.lab.outbox.ledger().dropped).toMatchObject({ memory_full: 5_200 });
  });

  it('limits memory while a burst is accepted, before anything else has a turn', () => {
    scene.lab.outbox.dispatch.disconnected();
    for (let n = 0; n < 30_000; n += 1) {
      scene.lab.send('feed', n);
      expect(scene.lab.outbox.ledger().buffered).toBeLessThanOrEqual(memory_rows_max + unchecked_rows_max);
    }
  });

  it('limits the memory of large messages in the same way', { tags: 'long' }, () => {
    scene.lab.outbox.dispatch.disconnected();
    const text = 'x'.repeat(200_000);
    for (let n = 0; n < 250; n += 1)
      scene.lab.outbox.append({ lane: 'feed', channel: 'feed/a/gps', data: { text } });
    expect(scene.lab.outbox.ledger().buffered * text.length).toBeLessThan(40 * 1024 * 1024);
  });

  it('reports drops from memory after a restart', async () => {
    scene.lab.outbox.dispatch.disconnected();
    for (let n = 0; n < 15_000; n += 1) scene.lab.send('feed', n);
    await eventually('the limit is kept', () => scene.lab.outbox.ledger().buffered <= 10_000);
    scene.disk.heal();
    await scene.reopen();
    const [drop, ...more] = scene.lab.outbox.opened.drops;
    expect(drop).toMatchObject({ lane: 'feed', reason: 'memory_full', rows: 5_000 });
    expect(more).toEqual([]);
  });
});

describe('Alarm that was sent from memory while disk writes fail', () => {
  let seq: number;
  beforeEach(async () => {
    scene.disk.refuse();
    scene.lab.connect({ ack: 'cloud' });
    seq = scene.lab.send('alarm', 1);
    await failing();
    const sent = await scene.lab.pump(heard, () => scene.lab.outbox.dispatch.live_rows === 0);
    expect(sent).toHaveLength(1);
  });
  const alarms = (): number | undefined => scene.lab.outbox.depth().get('alarm')?.rows;

  it('is written after disk writes resume and kept until the cloud acknowledges it', async () => {
    scene.disk.heal();
    await eventually('on disk', () => alarms() === 1);
    expect(scene.lab.outbox.ledger().delivered).toBe(0);
    expect(await scene.lab.pump(heard)).toEqual([]);
    scene.lab.outbox.confirm({ epoch: scene.lab.outbox.epoch, ranges: [[seq, seq]] });
    await eventually('released', () => scene.lab.outbox.ledger().delivered === 1);
    expect(alarms()).toBe(0);
  });

  it('is not written when the cloud acknowledges it before', async () => {
    scene.lab.outbox.confirm({ epoch: scene.lab.outbox.epoch, ranges: [[seq, seq]] });
    expect(scene.lab.outbox.ledger()).toMatchObject({ delivered: 1, buffered: 0 });
    scene.disk.heal();
    await eventually('disk writes resumed', () => scene.lab.outbox.health().state === 'ok');
    expect(scene.disk.commits.flatMap(({ rows }) => rows)).toEqual([]);
  });
});

describe('Outbox whose live queue is full while disk writes fail', () => {
  it('sends all alarms over the same connection after disk writes resume', { tags: 'long' }, async () => {
    scene.lab.connect();
    for (let n = 0; n < 5_000; n += 1) scene.lab.send('alarm', n);
    await eventually('the queue is full', () => scene.lab.outbox.dispatch.live_rows >= 4_096);
    scene.disk.refuse();
    for (let n = 5_000; n < 5_010; n += 1) scene.lab.send('alarm', n);
    await failing();
    await scene.disk.refusedAgain();
    scene.disk.heal();
    await scene.lab.pump(heard, () => scene.lab.outbox.ledger().delivered >= 5_010);
    await eventually('empty', () => scene.lab.outbox.ledger().buffered === 0);
  });
});

describe('Outbox that reconnects while disk writes fail', () => {
  it('sends messages in flight over the new connection after disk writes resume', async () => {
    for (let n = 0; n < 300; n += 1) scene.lab.send('task', n, `t${n}`);
    await scene.lab.outbox.flush();
    scene.lab.connect();
    await scene.lab.pump(
      () => undefined,
      () => scene.lab.outbox.depth().get('task')?.rows === 300 && next() !== undefined,
    );
    scene.lab.outbox.dispatch.disconnected();
    scene.disk.refuse();
    scene.lab.send('alarm', 1);
    await failing();
    scene.lab.connect();
    await scene.disk.refusedAgain();
    scene.disk.heal();
    await scene.lab.pump(heard, () => scene.lab.outbox.ledger().delivered === 301);
    await eventually('empty', () => scene.lab.outbox.ledger().buffered === 0);
  });
});

describe('Cloud acknowledgement while the disk fails or hangs', () => {
  it('is accepted without waiting and applied after disk writes resume', async () => {
    scene.lab.connect({ ack: 'cloud' });
    const seqs = Array.from({ length: 50 }, (_, n) => scene.lab.send('alarm', n));
    await scene.lab.pump(
      heard,
      () => scene.lab.outbox.depth().get('alarm')?.rows === 50 && scene.lab.outbox.dispatch.live_rows === 0,
    );
    await scene.lab.outbox.committed();
    scene.disk.hang();
    // Not asynchronous: nothing can have waited for the disk, which answers nothing.
    for (const seq of seqs) scene.lab.outbox.confirm({ epoch: scene.lab.outbox.epoch, ranges: [[seq, seq]] });
    expect(scene.lab.outbox.ledger().delivered).toBe(0);
    scene.disk.heal();
    await eventually('all are released', () => scene.lab.outbox.ledger().delivered === 50);
  });

  it('is applied when it was the only thing that the disk refused', async () => {
    scene.lab.connect({ ack: 'cloud' });
    const seq = scene.lab.send('alarm', 1);
    await scene.lab.pump(
      heard,
      () => scene.lab.outbox.depth().get('alarm')?.rows === 1 && scene.lab.outbox.dispatch.live_rows === 0,
    );
    await scene.lab.outbox.committed();
    scene.disk.refuse();
    scene.lab.outbox.confirm({ epoch: scene.lab.outbox.epoch, ranges: [[seq, seq]] });
    await failing();
    scene.disk.heal();
    await eventually('disk writes resumed', () => scene.lab.outbox.health().state === 'ok');
    await eventually('it is released', () => scene.lab.outbox.ledger().delivered === 1);
  });

  it('releases a message even if it arrives before the PUBACK', async () => {
    scene.lab.connect({ ack: 'cloud' });
    const seq = scene.lab.send('alarm', 1);
    let outgoing: OutgoingMessage | undefined;
    await eventually('it is handed out', () => (outgoing = next()) !== undefined);
    scene.lab.outbox.confirm({ epoch: scene.lab.outbox.epoch, ranges: [[seq, seq]] });
    await scene.lab.outbox.committed();
    if (outgoing) heard(outgoing);
    await eventually('it is released', () => scene.lab.outbox.ledger().delivered === 1);
    expect(scene.lab.outbox.depth().get('alarm')?.rows).toBe(0);
  });
});
