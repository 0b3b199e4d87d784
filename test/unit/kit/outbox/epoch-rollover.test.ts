/** Epochs that begin while the process runs. */
import { rm } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { OutgoingMessage } from '../../../../src/kit/outbox/live/outgoing.ts';
import { eventually } from '../../../support/eventually.ts';
import { FaultyDisk } from '../../../support/disk/faulty-disk.ts';
import { messagesIn, openLab, type OutboxLab } from '../../../support/disk/outbox-lab.ts';
import { makeDirectory } from '../../../support/temporary.ts';

let dir: string;
let disk: FaultyDisk;
let lab: OutboxLab;
let begun: number[];

const numbers = { numbers: 1_000 };

beforeEach(async () => {
  dir = await makeDirectory();
  disk = new FaultyDisk();
  begun = [];
  lab = await openLab(dir, { disk, numbers, onEpoch: (epoch) => begun.push(epoch) });
});
afterEach(async () => {
  expect(lab.outbox.ledger().balanced).toBe(true);
  disk.heal();
  await lab.outbox.close();
  await rm(dir, { recursive: true });
});

const heard = (outgoing: OutgoingMessage): void =>
  lab.outbox.dispatch.acknowledged(outgoing, { hasSubscribers: true });

describe('Outbox', () => {
  it('begins the next epoch before the numbers of one are used up, and loses nothing', async () => {
    const first = lab.outbox.epoch;
    lab.connect();
    const got = new Set<string>();
    for (let n = 0; n < 2_500; n += 1) {
      lab.send('alarm', n);
      if (n % 250 === 0) {
        const messages = await lab.pump(heard, () => lab.outbox.ledger().buffered < 100);
        for (const { epoch, seq } of messages.flatMap(messagesIn)) got.add(`${epoch} ${seq}`);
      }
    }
    const messages = await lab.pump(heard, () => lab.outbox.ledger().buffered === 0);
    for (const { epoch, seq } of messages.flatMap(messagesIn)) got.add(`${epoch} ${seq}`);
    expect(got.size).toBe(2_500);
    expect(lab.outbox.epoch).toBeGreaterThan(first);
    await eventually('the store knows the last one', () => begun.at(-1) === lab.outbox.epoch);
  });

  it('begins the next epoch in memory when the buffer thread does not answer', async () => {
    const first = lab.outbox.epoch;
    disk.hang();
    for (let n = 0; n < 1_500; n += 1) lab.send('feed', n);
    expect(lab.outbox.epoch).toBe(first + 1);
    disk.heal();
    await lab.outbox.flush();
    expect(lab.outbox.depth().get('feed')?.rows).toBe(1_500);
  });

  it('begins a higher epoch when the cloud acknowledges one that this kit has not begun', async () => {
    const foreign = lab.outbox.epoch + 3;
    lab.outbox.confirm({ epoch: foreign, ranges: [[1, 10]] });
    await eventually('a higher epoch', () => lab.outbox.epoch > foreign);
    lab.connect();
    lab.send('alarm', 1);
    const [outgoing] = await lab.pump(heard);
    expect(outgoing && messagesIn(outgoing)[0]).toMatchObject({ epoch: lab.outbox.epoch, seq: 1 });
  });

  it('begins a higher epoch when the cloud acknowledges numbers that were not used yet', async () => {
    const { epoch } = lab.outbox;
    const seq = lab.send('alarm', 1);
    lab.outbox.confirm({ epoch, ranges: [[1, seq]] });
    expect(begun).toEqual([]);
    lab.outbox.confirm({ epoch, ranges: [[1, seq + 1]] });
    await eventually('a higher epoch', () => begun.length > 0);
    expect(lab.outbox.epoch).toBeGreaterThan(epoch);
  });

  it('follows such an acknowledgement at most once a minute, and never beyond the largest step', async () => {
    const { epoch } = lab.outbox;
    lab.outbox.confirm({ epoch: 2 ** 40, ranges: [[1, 10]] });
    await eventually('an epoch began', () => begun.length === 1);
    expect(lab.outbox.epoch).toBeLessThan(2 ** 20);
    for (let n = 0; n < 20; n += 1) lab.outbox.confirm({ epoch: lab.outbox.epoch + 5, ranges: [[1, 10]] });
    await lab.outbox.beginEpoch(0);
    expect(begun).toHaveLength(2);
    expect(lab.outbox.epoch).toBeGreaterThan(epoch);
  });

  it('starts with a higher epoch than all of these after a restart', async () => {
    const epoch = await lab.outbox.beginEpoch(lab.outbox.epoch + 7);
    await lab.outbox.close();
    lab = await openLab(dir);
    expect(lab.outbox.epoch).toBeGreaterThan(epoch);
  });
});
