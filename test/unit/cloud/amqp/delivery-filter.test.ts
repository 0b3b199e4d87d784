/** What of a delivery reaches the AMQP library, frame by frame. */
import { describe, expect, it } from 'vitest';
import { DeliveryFilter } from '../../../../src/cloud/amqp/delivery-filter.ts';
import { texts } from '../../../../src/cloud/texts.ts';

const limits = { message_bytes_max: 1_000, held_bytes_max: 2_000 };
const deliver = (deliveryTag: number) => ({ id: 3_932_220, channel: 2, fields: { deliveryTag } });
const header = (size: number) => ({ id: 60, channel: 2, size, fields: {} });
const content = (bytes: number) => ({ channel: 2, content: Buffer.alloc(bytes) });

function newFilter() {
  const passed: unknown[] = [];
  const filter: DeliveryFilter = new DeliveryFilter(limits, (frame) => passed.push(filter.unread ?? frame));
  const take = (...frames: readonly object[]): void => frames.forEach((frame) => filter.accept(frame));
  return { filter, passed, take };
}

describe('DeliveryFilter', () => {
  it('passes messages within the limits unchanged, also empty ones, and all that is no delivery', () => {
    const { passed, take } = newFilter();
    const frames = [
      { id: 3_932_181, fields: { consumerTag: 'a' } },
      deliver(1),
      header(1_000),
      content(600),
      content(400),
      deliver(2),
      header(0),
      deliver(3),
      header(1),
      content(1),
      { id: 3_932_190, fields: {} },
    ];
    take(...frames);
    expect(passed).toEqual(frames);
  });

  it('reads past the content of a message above its limit, whatever its size, and passes it on without', () => {
    const { passed, take } = newFilter();
    take(deliver(1), header(1_000_000));
    for (let n = 0; n < 1_000; n += 1) {
      expect(passed).toEqual([]);
      take(content(1_000));
    }
    const unread = { reason: 'too_large', bytes: 1_000_000 };
    expect(passed).toEqual([unread, unread]);
    take(deliver(2), header(10), content(10));
    expect(passed.slice(2)).toEqual([deliver(2), header(10), content(10)]);
  });

  it('reads past messages for which there is no room, and calls back when half of it is free', () => {
    const { filter, passed, take } = newFilter();
    for (const tag of [1, 2, 3]) take(deliver(tag), header(900), content(900));
    const unread = { reason: 'no_room', bytes: 900 };
    expect(passed.slice(6)).toEqual([unread, unread]);
    let calls = 0;
    filter.whenRoom(() => (calls += 1));
    expect(calls).toBe(0);
    filter.release(900);
    filter.release(900);
    expect(calls).toBe(1);
    take(deliver(3), header(900), content(900));
    expect(passed.slice(8)).toEqual([deliver(3), header(900), content(900)]);
  });

  it('keeps no room for a message that breaks the protocol, and reports more content than was announced', () => {
    const { filter, passed, take } = newFilter();
    take(deliver(1), header(-5_000), deliver(2), header(900));
    expect(passed).toHaveLength(4);
    expect(() => filter.accept(header(1))).not.toThrow();
    take(deliver(3), header(5_000));
    expect(() => filter.accept(content(5_001))).toThrow(texts.amqp_content_broken);
    expect(() => filter.accept(header(0))).toThrow(texts.amqp_content_broken);
  });
});
