/** What an acknowledgement of the cloud does to an outbox on a real file. */
import { expect, it } from 'vitest';
import { texts } from '../../../../../src/kit/outbox/texts.ts';
import { openLab } from '../../../../support/disk/outbox-lab.ts';
import { eventually } from '../../../../support/eventually.ts';
import { makeDirectory } from '../../../../support/temporary.ts';

it('An acknowledgement that names nothing of the kit is logged once, and those behind it release what they name', async () => {
  const lab = await openLab(await makeDirectory());
  const { outbox } = lab;
  let taken = 0;
  const release = async (n: number): Promise<void> => {
    const seq = lab.send('task', n, `t${n}`);
    await lab.pump(
      (outgoing) => {
        outbox.dispatch.acknowledged(outgoing, { hasSubscribers: true });
        taken += 1;
      },
      () => taken === n,
    );
    // Below every epoch that a kit has: it is applied before the one of this run.
    outbox.confirm({ epoch: n, ranges: [[1, 5]] });
    outbox.confirm({ epoch: outbox.epoch, ranges: [[seq, seq]] });
    await eventually('the message is released', () => outbox.ledger().delivered === n);
  };
  try {
    lab.connect({ ack: 'cloud' });
    await release(1);
    await release(2);
    expect(lab.lines.filter((line) => line === texts.ack_ignored)).toHaveLength(1);
  } finally {
    await outbox.close();
  }
});
