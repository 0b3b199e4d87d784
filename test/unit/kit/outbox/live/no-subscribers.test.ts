import { describe, expect, it } from 'vitest';
import { NoSubscribers } from '../../../../../src/kit/outbox/live/gate.ts';
import { texts } from '../../../../../src/kit/outbox/texts.ts';
import { openLab } from '../../../../support/disk/outbox-lab.ts';
import { eventually } from '../../../../support/eventually.ts';
import { makeDirectory } from '../../../../support/temporary.ts';

describe('NoSubscribers', () => {
  it('allows one probe after each pause, and the pauses grow up to half a minute', () => {
    let now_ms = 0;
    const no_subscribers = new NoSubscribers(() => now_ms);
    no_subscribers.missing('feed/a/gps', 'feed');
    const probes: number[] = [];
    for (; now_ms < 200_000; now_ms += 50) if (no_subscribers.allows('feed/b/attitude')) probes.push(now_ms);
    const rests = probes.slice(1).map((at, index) => at - (probes[index] ?? 0));
    expect(probes[0]).toBeLessThanOrEqual(1_050);
    expect(Math.max(...rests)).toBeLessThanOrEqual(30_050);
    expect(rests.at(-1)).toBeGreaterThanOrEqual(15_000);
  });

  it('ends the pause as soon as a probe finds subscribers, and pauses only the kind without them', () => {
    const no_subscribers = new NoSubscribers(() => 0);
    no_subscribers.missing('feed/a/gps', 'feed');
    expect(no_subscribers.allows('event/a/motion')).toBe(true);
    expect(no_subscribers.rests('feed/a/gps')).toBe(true);
    expect(no_subscribers.withoutSubscribers((lane) => lane === 'feed')).toEqual(['feed']);
    expect(no_subscribers.withoutSubscribers((lane) => lane !== 'feed')).toEqual([]);
    no_subscribers.found('feed/b/gps');
    expect(no_subscribers.allows('feed/a/gps')).toBe(true);
    expect(no_subscribers.withoutSubscribers(() => true)).toEqual([]);
  });

  it('names them in one order, in whichever they were found: their sentence is logged once', () => {
    const no_subscribers = new NoSubscribers(() => 0);
    for (const kind of ['telemetry', 'event', 'batch']) no_subscribers.missing(`${kind}/a`, 'feed');
    expect(no_subscribers.withoutSubscribers(() => true)).toEqual(['batch', 'event', 'telemetry']);
  });
});

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
