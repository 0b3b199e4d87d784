/** Losses counted by sequence numbers. */
import { describe, expect, it } from 'vitest';
import { LinkTally } from '../../../../../drivers/mavlink/links/link-tally.ts';
import { framesOfDatagram, heartbeat } from '../frames.ts';

function counted(seqs: readonly number[], tally = new LinkTally()) {
  for (const seq of seqs)
    for (const frame of framesOfDatagram(heartbeat(seq & 0xff)).frames) tally.frame(frame, 'peer');
  return tally.stats().components[0];
}

describe('Link tally', () => {
  it.each([
    ['counts no loss in an unbroken sequence, also where it wraps', [254, 255, 256, 257], 0],
    ['counts the size of a gap as lost', [1, 2, 6, 7], 3],
    ['counts a gap across the wrap', [253, 258], 4],
    ['does not count an overtaken frame as lost', [1, 3, 2, 4], 0],
    ['does not count a duplicate as a late frame', [1, 4, 4, 5], 2],
    ['counts a number far back as a restart of the sender, not as a loss', [100, 101, 0, 1], 0],
  ])('%s', (_, seqs, lost) => {
    expect(counted(seqs)).toMatchObject({ lost, received: seqs.length });
  });

  it('keeps a separate sequence for each component of each peer', () => {
    const tally = new LinkTally();
    for (const [seq, sysid, peer] of [
      [1, 1, 'a'],
      [9, 2, 'a'],
      [2, 1, 'a'],
      [77, 1, 'b'],
      [12, 2, 'a'],
    ] as const) {
      for (const frame of framesOfDatagram(heartbeat(seq, sysid)).frames) tally.frame(frame, peer);
    }
    expect(
      tally.stats().components.map(({ peer, sysid, received, lost }) => [peer, sysid, received, lost]),
    ).toEqual([
      ['a', 1, 2, 0],
      ['a', 2, 2, 2],
      ['b', 1, 1, 0],
    ]);
  });

  it('limits the number of peers and unknown message ids in memory', () => {
    const tally = new LinkTally();
    const [frame] = framesOfDatagram(heartbeat()).frames;
    for (let index = 0; index < 1_000; index++) {
      tally.frame(frame!, `peer ${index}`);
      tally.unknownId(60_000 + index);
    }
    tally.unknownId(60_000);
    const { components, unknown_ids } = tally.stats();
    expect(components).toHaveLength(256);
    expect(components.at(-1)?.peer).toBe('peer 999');
    expect(unknown_ids.size).toBe(64);
    expect(unknown_ids.get(60_000)).toBe(2);
  });
});
