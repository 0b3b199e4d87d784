/** The disk answers no write: messages go on from memory, and nothing waits for the disk. Each test waits some seconds: so they run side by side. */
import { describe, expect, it } from 'vitest';
import { memory_rows_burst_max, unchecked_rows_max } from '../../../../src/kit/outbox/live/memory-limit.ts';
import type { OutgoingMessage } from '../../../../src/kit/outbox/live/outgoing.ts';
import { texts } from '../../../../src/kit/outbox/texts.ts';
import { FaultyDisk } from '../../../support/disk/faulty-disk.ts';
import { messagesIn, openLab, type OutboxLab } from '../../../support/disk/outbox-lab.ts';
import { eventually } from '../../../support/eventually.ts';
import { withDirectory } from '../../../support/temporary.ts';

interface Scene {
  readonly disk: FaultyDisk;
  readonly lab: OutboxLab;
  readonly heard: (outgoing: OutgoingMessage) => void;
  /** Resolves when the disk counts as failing. */
  readonly failing: () => Promise<void>;
}

const inLab = (play: (scene: Scene) => Promise<void> | void) => async (): Promise<void> =>
  withDirectory(async (dir) => {
    const disk = new FaultyDisk();
    const lab = await openLab(dir, { disk });
    const { outbox } = lab;
    await play({
      disk,
      lab,
      heard: (outgoing) => outbox.dispatch.acknowledged(outgoing, { hasSubscribers: true }),
      failing: async () => eventually('failing', () => outbox.health().state === 'failing'),
    });
    expect(outbox.ledger().balanced).toBe(true);
    disk.heal();
    await outbox.close();
  });

describe.concurrent('Outbox while the disk does not answer', () => {
  it(
    'treats a commit unanswered for five seconds as failed, sends alarms from memory and recovers',
    inLab(async ({ disk, lab, heard, failing }) => {
      lab.connect();
      disk.hang();
      lab.send('alarm', 1);
      await failing();
      expect(lab.outbox.health().detail).toBe(texts.commit_unanswered(5));
      lab.send('alarm', 2);
      const sent = await lab.pump(heard, () => lab.outbox.dispatch.live_rows === 0);
      expect(sent.flatMap(messagesIn).map(({ data }) => data['n'])).toEqual([1, 2]);
      disk.heal();
      await eventually('ok again', () => lab.outbox.health().state === 'ok');
      await eventually('empty', () => lab.outbox.ledger().buffered === 0);
      expect(lab.outbox.ledger().delivered).toBe(2);
    }),
  );

  it(
    'sends alarms from memory before that limit, and writes and delivers them once',
    inLab(async ({ disk, lab, heard }) => {
      lab.connect();
      disk.hang();
      lab.send('alarm', 1);
      await eventually('the commit is under way', () => lab.outbox.unanswered_ms() > 0);
      lab.send('alarm', 2);
      lab.send('presence', 3);
      const states = new Set<string>();
      const hearWhile = (outgoing: OutgoingMessage): void => {
        states.add(lab.outbox.health().state);
        heard(outgoing);
      };
      const sent = await lab.pump(hearWhile, () => lab.outbox.unanswered_ms() > 4_000);
      // Of the moments at which they were sent: this process may stall until after the limit.
      expect([...states]).toEqual(['ok']);
      expect(sent.flatMap(messagesIn).map(({ data }) => data['n'])).toEqual(
        expect.arrayContaining([1, 2, 3]),
      );
      expect(sent).toHaveLength(3);
      disk.heal();
      await eventually('empty', () => lab.outbox.ledger().buffered === 0);
      expect(lab.outbox.ledger()).toMatchObject({ delivered: 3, dropped: {} });
      expect(await lab.pump(heard)).toEqual([]);
    }),
  );

  it(
    'counts an alarm once whose commit began before the connection, also if it is sent from memory and from disk',
    inLab(async ({ disk, lab, heard }) => {
      disk.hang();
      lab.send('alarm', 1);
      await eventually('the commit is under way', () => lab.outbox.unanswered_ms() > 0);
      lab.connect();
      const sent = await lab.pump(heard, () => lab.outbox.unanswered_ms() > 3_000);
      expect(sent).toHaveLength(1);
      disk.heal();
      await eventually('empty', () => lab.outbox.ledger().buffered === 0);
      await lab.pump(heard);
      await lab.outbox.committed();
      expect(lab.outbox.ledger()).toMatchObject({ delivered: 1, dropped: {}, buffered: 0 });
    }),
  );

  it(
    'limits memory',
    inLab(async ({ disk, lab, failing }) => {
      disk.hang();
      lab.send('feed', 0);
      await failing();
      for (let n = 0; n < 30_000; n += 1) lab.send('feed', n);
      await eventually('the limit is kept', () => lab.outbox.ledger().buffered <= 10_000);
      expect(lab.outbox.ledger().dropped).toMatchObject({ memory_full: 20_001 });
      disk.heal();
      await eventually('on disk', () => (lab.outbox.depth().get('feed')?.rows ?? 0) >= 9_999);
    }),
  );

  it(
    'rejects requests that wait for a commit after five seconds',
    inLab(async ({ disk, lab }) => {
      disk.hang();
      lab.send('alarm', 1);
      await expect(lab.outbox.committed()).rejects.toThrow(texts.commit_unanswered(5));
    }),
  );
});

/** By itself: what it does at one go would make the others late. */
describe('Outbox whose disk has just stopped answering', () => {
  it(
    'limits memory before the disk counts as failing, and drops nothing below that limit',
    inLab(({ disk, lab }) => {
      disk.hang();
      for (let n = 0; n < 200; n += 1) lab.send('task', n, `t${n}`);
      for (let n = 0; n < 30_000; n += 1) lab.send('feed', n);
      expect(lab.outbox.ledger()).toMatchObject({ buffered: 30_200, dropped: {} });
      for (let n = 0; n < 30_000; n += 1) lab.send('feed', n);
      const { buffered, dropped } = lab.outbox.ledger();
      expect(lab.outbox.health().state).toBe('ok');
      expect(buffered).toBeLessThanOrEqual(memory_rows_burst_max + unchecked_rows_max);
      expect(dropped).toEqual({ memory_full: 60_200 - buffered });
      expect(lab.outbox.depth().get('task')?.memory_rows).toBe(200);
    }),
  );
});
