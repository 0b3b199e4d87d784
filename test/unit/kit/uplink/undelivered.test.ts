import { describe, expect, it } from 'vitest';
import type { OutgoingMessage } from '../../../../src/kit/outbox/live/outgoing.ts';
import { rowId } from '../../../../src/kit/outbox/row.ts';
import { Problems, Undelivered } from '../../../../src/kit/uplink/problems.ts';
import { outgoingRow } from '../../../support/disk/messages.ts';

const epoch = 3;

const outgoing = (seq: number, kind: string): OutgoingMessage =>
  outgoingRow(rowId({ epoch, seq }), { channel: `${kind}/a/gps` });

function lab() {
  const world = { now_ms: 0, seq: 0, said: 0 };
  const problems = new Problems(() => world.now_ms, { warn: () => (world.said += 1) });
  const undelivered = new Undelivered(() => world.now_ms, problems);
  /** Delivers one of each kind every second; the cloud stores those of the `stored` kinds at once. */
  const run = (seconds: number, kinds: readonly string[], stored: readonly string[]): void => {
    for (let n = 0; n < seconds; n++) {
      world.now_ms += 1_000;
      const numbers = kinds.flatMap((kind) => {
        world.seq += 1;
        undelivered.delivered(outgoing(world.seq, kind));
        return stored.includes(kind) ? [world.seq] : [];
      });
      if (numbers.length > 0) undelivered.stored({ epoch, ranges: numbers.map((seq) => [seq, seq]) });
    }
  };
  return { world, problems, undelivered, run };
}

describe('what the broker accepts and the cloud never stores', () => {
  it('is named after three minutes, once, and cleared when it arrives after all', () => {
    const { world, problems, run } = lab();
    run(150, ['feed', 'event'], ['event']);
    expect(problems.sentences()).toEqual([]);
    run(60, ['feed', 'event'], ['event']);
    expect(problems.sentences().join()).toMatch(/messages of kind feed and the cloud never stores them/);
    run(300, ['feed', 'event'], ['event']);
    expect(world.said).toBe(1);
    run(70, ['feed', 'event'], ['event', 'feed']);
    expect(problems.sentences()).toEqual([]);
  });

  it('is not found where the cloud stores nothing at all, as while it is away', () => {
    const { problems, run } = lab();
    run(10, ['feed', 'event'], ['feed', 'event']);
    run(1_000, ['feed', 'event'], []);
    expect(problems.sentences()).toEqual([]);
  });

  it('is not found where an acknowledgement of the cloud overtakes that of the broker now and then', () => {
    const { world, problems, undelivered, run } = lab();
    for (let n = 0; n < 20; n++) {
      world.seq += 1;
      undelivered.stored({ epoch, ranges: [[world.seq, world.seq]] });
      undelivered.delivered(outgoing(world.seq, 'feed'));
      run(90, ['feed', 'event'], ['event', 'feed']);
    }
    expect(problems.sentences()).toEqual([]);
  });
});
