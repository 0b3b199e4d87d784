/** Acknowledgements of the cloud that arrive before the PUBACK of what they name. */
import { describe, expect, it } from 'vitest';
import type { Stored } from '../../../../../src/kit/outbox/protocol.ts';
import { InFlight } from '../../../../../src/kit/outbox/live/delivery.ts';
import type { OutgoingMessage } from '../../../../../src/kit/outbox/live/outgoing.ts';
import { rowId } from '../../../../../src/kit/outbox/row.ts';
import { outgoing } from '../../../../support/disk/messages.ts';

type Content = OutgoingMessage['content'];
const message = (content: unknown): OutgoingMessage => outgoing({ content: content as Content });
const row = (epoch: number, seq: number): OutgoingMessage =>
  message({ kind: 'row', row: { id: rowId({ epoch, seq }) } });
const live = (epoch: number, seq: number): OutgoingMessage =>
  message({ kind: 'live', live: { row: { id: rowId({ epoch, seq }) } } });
const batch = (lo: readonly [number, number], hi: readonly [number, number]): OutgoingMessage => {
  const id = ([epoch, seq]: readonly [number, number]): number => rowId({ epoch, seq });
  return message({ kind: 'batch', batch: { lo: id(lo), hi: id(hi) } });
};
const ack = (epoch: number, ...ranges: Stored['ranges'][number][]): Stored => ({ epoch, ranges });

/** What is known of a message when its PUBACK arrives. */
function early(outgoing: OutgoingMessage, ...acks: readonly Stored[]): readonly Stored[] {
  const in_flight = new InFlight();
  in_flight.add(outgoing);
  for (const each of acks) in_flight.cloudStored(each);
  return in_flight.remove(outgoing);
}

describe('InFlight', () => {
  it.each([
    ['row', row],
    ['live', live],
  ] as const)('keeps the acknowledgement of a message of kind %s only if it names it', (_kind, make) => {
    const named = ack(2, [5, 9]);
    expect(early(make(2, 7), named)).toEqual([named]);
    expect(early(make(2, 10), named)).toEqual([]);
    expect(early(make(3, 7), named)).toEqual([]);
  });

  it('keeps of an acknowledgement what may concern a batch', () => {
    expect(early(batch([2, 10], [2, 20]), ack(2, [1, 9], [5, 10], [15, 16], [20, 30], [21, 40]))).toEqual([
      ack(2, [5, 10], [15, 16], [20, 30]),
    ]);
    expect(early(batch([2, 10], [2, 20]), ack(1, [10, 20]), ack(3, [10, 20]))).toEqual([]);
  });

  it('joins the parts of a batch that spans epochs, from where it begins to where it ends', () => {
    const spanning = batch([2, 10], [4, 5]);
    expect(early(spanning, ack(2, [1, 9], [12, 12]), ack(3, [1, 2]), ack(4, [5, 5], [6, 9]))).toEqual([
      ack(2, [12, 12]),
      ack(3, [1, 2]),
      ack(4, [5, 5]),
    ]);
  });

  it('keeps the last four acknowledgements of a batch', () => {
    const acks = Array.from({ length: 6 }, (_, n) => ack(2, [10 + n, 10 + n]));
    expect(early(batch([2, 10], [2, 20]), ...acks)).toEqual(acks.slice(2));
  });

  it('forgets a message with its PUBACK, and all of them with the connection', () => {
    const in_flight = new InFlight();
    const [first, second] = [row(2, 1), row(2, 2)];
    in_flight.add(first);
    in_flight.add(second);
    in_flight.cloudStored(ack(2, [1, 1]));
    expect(in_flight.remove(first)).toHaveLength(1);
    expect(in_flight.remove(first)).toEqual([]);
    expect([in_flight.has(first), in_flight.has(second)]).toEqual([false, true]);
    expect(in_flight.drain()).toEqual([second]);
    expect([...in_flight.messages()]).toEqual([]);
  });
});
