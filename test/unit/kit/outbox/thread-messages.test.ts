/** What crosses between the threads of the outbox arrives as it was sent, in any mixture of lanes and channels. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { lanes } from '../../../../src/contract/lanes.ts';
import type { RowRef, TakenRow } from '../../../../src/kit/outbox/protocol.ts';
import { work } from '../../../support/disk/store-lab.ts';
import { packTaken, packWork, unpackTaken, unpackWork } from '../../../../src/kit/outbox/thread-messages.ts';

const ref = fc.record({ lane: fc.constantFrom(...lanes), id: fc.nat() });

const inOrder = (refs: readonly RowRef[]): readonly RowRef[] =>
  lanes.flatMap((lane) => refs.filter((each) => each.lane === lane));

describe('The work of a commit', () => {
  it('has the same rows as delivered and as unconfirmed on the other side, in their order within each lane', () => {
    fc.assert(
      fc.property(fc.array(ref), fc.array(ref), (delivered, unconfirmed) => {
        const crossed = unpackWork(structuredClone(packWork(work({ delivered, unconfirmed }))));
        expect(inOrder(crossed.delivered)).toEqual(inOrder(delivered));
        expect(inOrder(crossed.unconfirmed)).toEqual(inOrder(unconfirmed));
      }),
    );
  });

  it('keeps everything else as it is', () => {
    const whole = work({
      rows: [{ id: 7, lane: 'task', channel: 'task/1', time_ms: 5, mono_ms: null, body: '{}' }],
      held: [7],
      delivered_batches: [3],
      superseded: [{ lane: 'feed', id: 2 }],
    });
    expect(unpackWork(structuredClone(packWork(whole)))).toEqual(whole);
  });

  it('names each lane once, however many rows of it were delivered', () => {
    const delivered = Array.from({ length: 1_000 }, (_, id) => ({ lane: lanes[id % 2] ?? 'feed', id }));
    expect(packWork(work({ delivered })).delivered).toHaveLength(2);
  });
});

describe('The rows of a request', () => {
  const row = fc.record({
    id: fc.nat(),
    channel: fc.constantFrom('feed/a/gps', 'feed/b/gps', 'state'),
    time_ms: fc.nat(),
    mono_ms: fc.option(fc.nat(), { nil: null }),
    time_quality: fc.constantFrom(undefined, 'corrected' as const, 'unsynced' as const),
    body: fc.json(),
  });

  it('arrive as they were read', () => {
    fc.assert(
      fc.property(fc.array(row), fc.constantFrom(...lanes), fc.boolean(), (rows, lane, drained) => {
        const taken = { rows: rows.map((each): TakenRow => ({ ...each, lane })), batch: undefined, drained };
        expect(unpackTaken(lane, structuredClone(packTaken(taken)))).toEqual(taken);
      }),
    );
  });

  it('carry each channel once', () => {
    const rows = Array.from({ length: 100 }, (_, id): TakenRow => ({
      id,
      lane: 'feed',
      channel: id % 2 ? 'feed/a/gps' : 'feed/a/battery',
      time_ms: id,
      mono_ms: null,
      time_quality: undefined,
      body: '{}',
    }));
    const { channels } = packTaken({ rows, batch: undefined, drained: false });
    expect(channels).toEqual(['feed/a/battery', 'feed/a/gps']);
  });
});
