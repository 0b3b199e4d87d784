/** Epochs that begin while the process runs. */
import { beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../../../support/eventually.ts';
import { dispatchScene } from '../../../support/disk/dispatch-scene.ts';
import { messagesIn } from '../../../support/disk/outbox-lab.ts';

const begun: number[] = [];
const scene = dispatchScene(() => ({ numbers: { numbers: 1_000 }, onEpoch: (epoch) => begun.push(epoch) }));
const { heard } = scene;
beforeEach(() => void begun.splice(0));

describe('Outbox', () => {
  it('begins the next epoch before the numbers of one are used up, and loses nothing', async () => {
    const first = scene.lab.outbox.epoch;
    scene.lab.connect();
    const got = new Set<string>();
    for (let n = 0; n < 2_500; n += 1) {
      scene.lab.send('alarm', n);
      if (n % 250 === 0) {
        const messages = await scene.lab.pump(heard, () => scene.lab.outbox.ledger().buffered < 100);
        for (const { epoch, seq } of messages.flatMap(messagesIn)) got.add(`${epoch} ${seq}`);
      }
    }
    const messages = await scene.lab.pump(heard, () => scene.lab.outbox.ledger().buffered === 0);
    for (const { epoch, seq } of messages.flatMap(messagesIn)) got.add(`${epoch} ${seq}`);
    expect(got.size).toBe(2_500);
    expect(scene.lab.outbox.epoch).toBeGreaterThan(first);
    await eventually('the store knows the last one', () => begun.at(-1) === scene.lab.outbox.epoch);
  });

  it('begins the next epoch in memory when the buffer thread does not answer', async () => {
    const first = scene.lab.outbox.epoch;
    scene.disk.hang();
    for (let n = 0; n < 1_500; n += 1) scene.lab.send('feed', n);
    expect(scene.lab.outbox.epoch).toBe(first + 1);
    scene.disk.heal();
    await scene.lab.outbox.flush();
    expect(scene.lab.outbox.depth().get('feed')?.rows).toBe(1_500);
  });

  it('begins a higher epoch when the cloud acknowledges one that this kit has not begun', async () => {
    const foreign = scene.lab.outbox.epoch + 3;
    scene.lab.outbox.confirm({ epoch: foreign, ranges: [[1, 10]] });
    await eventually('a higher epoch', () => scene.lab.outbox.epoch > foreign);
    scene.lab.connect();
    scene.lab.send('alarm', 1);
    const [outgoing] = await scene.lab.pump(heard);
    expect(outgoing && messagesIn(outgoing)[0]).toMatchObject({ epoch: scene.lab.outbox.epoch, seq: 1 });
  });

  it('begins a higher epoch when the cloud acknowledges numbers that were not used yet', async () => {
    const { epoch } = scene.lab.outbox;
    const seq = scene.lab.send('alarm', 1);
    scene.lab.outbox.confirm({ epoch, ranges: [[1, seq]] });
    expect(begun).toEqual([]);
    scene.lab.outbox.confirm({ epoch, ranges: [[1, seq + 1]] });
    await eventually('a higher epoch', () => begun.length > 0);
    expect(scene.lab.outbox.epoch).toBeGreaterThan(epoch);
  });

  it('follows such an acknowledgement at most once a minute, and never beyond the largest step', async () => {
    const { epoch } = scene.lab.outbox;
    scene.lab.outbox.confirm({ epoch: 2 ** 40, ranges: [[1, 10]] });
    await eventually('an epoch began', () => begun.length === 1);
    expect(scene.lab.outbox.epoch).toBeLessThan(2 ** 20);
    for (let n = 0; n < 20; n += 1)
      scene.lab.outbox.confirm({ epoch: scene.lab.outbox.epoch + 5, ranges: [[1, 10]] });
    await scene.lab.outbox.beginEpoch(0);
    expect(begun).toHaveLength(2);
    expect(scene.lab.outbox.epoch).toBeGreaterThan(epoch);
  });

  it('starts with a higher epoch than all of these after a restart', async () => {
    const epoch = await scene.lab.outbox.beginEpoch(scene.lab.outbox.epoch + 7);
    await scene.reopen();
    expect(scene.lab.outbox.epoch).toBeGreaterThan(epoch);
  });
});
