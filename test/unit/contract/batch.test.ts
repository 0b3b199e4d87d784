/** The batch carries messages unchanged, in few bytes, and refuses what would hurt the reader. */
import { deflateSync, inflateSync } from 'node:zlib';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeColumn } from '../../../src/contract/batch/writer.ts';
import { openBatch, unpackBatch, decodeColumn, column } from '../../../src/contract/batch/batch.ts';
import { batch_items_max, batch_text_max, packBatch, writeBatch } from '../../../src/contract/batch/pack.ts';
import { type BatchItem } from '../../../src/contract/batch/writer.ts';

const historical = { historical: true };
const item = (seq: number, data: unknown, more: Partial<BatchItem> = {}): BatchItem => ({
  channel: 'feed/a/gps',
  epoch: 1,
  seq,
  time_ms: 1_795_000_000_000 + seq * 500,
  data: JSON.stringify(data),
  ...more,
});
const pack = (text: string): Uint8Array => deflateSync(text);
const packGroups = (...groups: object[]): Uint8Array =>
  pack(JSON.stringify({ v: 1, historical: true, groups }));
const roundTrip = (items: readonly BatchItem[]): BatchItem[] => unpackBatch(packBatch(items, historical));

const nastyNumber = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(-0, 0, 1e21, 1e-21, 5e-324, 0.1 + 0.2, 1.005, 2 ** 53, -(2 ** 53) - 2, 0.000000001),
  fc.tuple(fc.integer(), fc.integer({ min: 0, max: 12 })).map(([digits, s]) => digits / 10 ** s),
);
const anyText = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '__proto__',
    'constructor',
    '2026-11-21T10:00:00.000Z',
    '2026-02-30T10:00:00.000Z',
    '-0',
    '1',
  ),
  fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
);
const anyData = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    nastyNumber,
    anyText,
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(anyText, tie('value'), { maxKeys: 5 }),
  ),
})).value;
const position = fc.record({
  channel: fc.constantFrom('feed/a/gps', 'feed/b/gps', 'event/ü/"status"'),
  epoch: fc.integer({ min: 1, max: 3 }),
  time_ms: fc.integer({ min: -1_000, max: 4_000_000_000_000 }),
});
const quality = fc.constantFrom(
  {},
  { time_quality: 'unsynced' as const },
  { time_quality: 'corrected' as const },
);

/** Numbered in order, so that the order of the list is the order of the batch. */
function numbered(parts: readonly [Omit<BatchItem, 'seq' | 'data'>, object, unknown][]): BatchItem[] {
  const items = parts.map(([place, time, data], seq) => ({
    ...place,
    ...time,
    seq,
    data: JSON.stringify(data),
  }));
  return items.sort((a, b) => a.epoch - b.epoch || a.seq - b.seq);
}

describe('messages in a batch', () => {
  it('are unpacked unchanged, whatever JSON they contain', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(position, quality, anyData), { maxLength: 30 }), (parts) => {
        const items = numbered(parts);
        expect(roundTrip(items)).toEqual(items);
      }),
      { numRuns: 300 },
    );
  });

  it('come out as they went in when they share their keys and stand in columns', () => {
    const row = fc.tuple(nastyNumber, anyText, fc.option(nastyNumber), fc.boolean(), anyData);
    fc.assert(
      fc.property(fc.array(fc.tuple(position, quality, row), { minLength: 2, maxLength: 40 }), (parts) => {
        const items = numbered(
          parts.map(([place, time, [a, b, c, d, e]]) => [place, time, { a, b, ['__proto__']: c, 10: d, e }]),
        );
        expect(roundTrip(items)).toEqual(items);
      }),
      { numRuns: 300 },
    );
  });

  it('keep the order of their keys', () => {
    const items = [item(1, { b: 1, a: 2 }), item(2, { a: 2, b: 1 }), item(3, { b: 3, a: 4 })];
    expect(roundTrip(items).map(({ data }) => data)).toEqual([
      '{"b":1,"a":2}',
      '{"a":2,"b":1}',
      '{"b":3,"a":4}',
    ]);
  });

  it('come out by epoch and sequence number, however they went in', () => {
    const items = [item(3, 0), item(1, 0, { epoch: 2 }), item(2, 0, { channel: 'task/t' }), item(1, 0)];
    expect(roundTrip(items).map(({ epoch, seq }) => [epoch, seq])).toEqual([
      [1, 1],
      [1, 2],
      [1, 3],
      [2, 1],
    ]);
  });

  it('keep a fraction of a millisecond out of their time, as the envelope does', () => {
    expect(roundTrip([item(1, {}, { time_ms: 1_795_000_000_000.7 })])[0]?.time_ms).toBe(1_795_000_000_000);
  });

  it('may be many shapes on one channel', () => {
    const items = Array.from({ length: 200 }, (_, seq) => item(seq, { [`key${seq % 50}`]: seq }));
    expect(roundTrip(items)).toEqual(items);
  });

  it('may be none at all', () => {
    expect(roundTrip([])).toEqual([]);
  });
});

describe('a column', () => {
  const decode = (text: string, rows: number): readonly string[] =>
    decodeColumn(column.parse(JSON.parse(text)), rows);

  it('gives back the very same numbers', () => {
    fc.assert(
      fc.property(fc.array(nastyNumber, { minLength: 1, maxLength: 50 }), (values) => {
        expect(decode(encodeColumn(values), values.length)).toEqual(
          values.map((value) => JSON.stringify(value)),
        );
      }),
      { numRuns: 1_000 },
    );
  });

  it('of measured numbers is integers of as few decimals as they need', () => {
    expect(encodeColumn([47.3977419, 47.3977508, 47.39])).toBe('{"s":7,"d":[473977419,89,-77508]}');
    expect(encodeColumn([12, 15, 11])).toBe('{"s":0,"d":[12,3,-4]}');
  });

  it('of numbers that no decimals express exactly is kept as it is', () => {
    expect(encodeColumn([0.1 + 0.2, 1])).toBe('{"v":[0.30000000000000004,1]}');
    expect(encodeColumn([1e21, 1])).toBe('{"v":[1e+21,1]}');
  });

  it('of one repeated value is that value', () => {
    expect(encodeColumn([3.5, 3.5])).toBe('{"c":3.5}');
    expect(encodeColumn([['people'], ['people']])).toBe('{"c":["people"]}');
  });

  it('of timestamps is milliseconds, unless one of them is written otherwise', () => {
    const first = '2026-11-21T10:00:00.000Z';
    expect(encodeColumn([first, '2026-11-21T10:00:01.500Z'])).toBe('{"t":[1795255200000,1500]}');
    expect(encodeColumn([first, '2026-11-21T10:00:01Z'])).toBe(`{"v":["${first}","2026-11-21T10:00:01Z"]}`);
  });
});

describe('the size of a batch', () => {
  it('is at most 16 bytes a message for 200 positions of 8 drones, half of their plain deflated JSON', () => {
    const items = flight(200, 8);
    const packed = packBatch(items, historical);
    expect(packed.length / items.length).toBeLessThanOrEqual(16);
    expect(packed.length).toBeLessThan(deflateSync(JSON.stringify(items)).length / 2);
  });

  it('begins with another byte than a JSON message', () => {
    expect(packBatch([item(1, {})], historical)[0]).toBe(0x78);
  });
});

describe('the reader of a batch', () => {
  const group = { e: 1, ch: 'feed/a/gps', seq: [1, 1], t: [1, 1] };

  it('detects whether its messages are history', () => {
    expect(openBatch(packBatch([item(1, {})], historical)).historical).toBe(true);
    expect(openBatch(packBatch([item(1, {})], { historical: false })).historical).toBe(false);
  });

  it('refuses a text that inflates beyond the limit', () => {
    expect(() => unpackBatch(pack(' '.repeat(batch_text_max + 1)))).toThrow(
      expect.objectContaining({ code: 'ERR_BUFFER_TOO_LARGE' }),
    );
  });

  it('refuses small columns that spell out beyond the limit', () => {
    const seq = Array<number>(batch_items_max).fill(1);
    const wide = {
      ...group,
      seq,
      t: seq,
      k: Array<string>(1_000).fill(''),
      c: Array.from({ length: 1_000 }, () => ({ c: 0 })),
    };
    const long = { ...group, seq, t: seq, k: ['a'], c: [{ c: 'x'.repeat(10_000) }] };
    expect(() => unpackBatch(packGroups(wide))).toThrow(RangeError);
    expect(() => unpackBatch(packGroups(long))).toThrow(RangeError);
  });

  it('refuses more messages than the limit, as the writer does', () => {
    const items = Array.from({ length: batch_items_max + 1 }, (_, seq) => item(seq, {}));
    expect(() => packBatch(items, historical)).toThrow(RangeError);
    const seq = items.map(({ seq }) => seq);
    expect(() => unpackBatch(packGroups({ ...group, seq, t: seq, k: [], c: [] }))).toThrow(RangeError);
  });

  it.each([
    [
      'a column shorter than the list of messages',
      { k: ['a'], c: [{ v: [1] }] },
      'a column has 1 values for 2 messages',
    ],
    ['fewer columns than keys', { k: ['a', 'b'], c: [{ c: 1 }] }, '1 columns for 2 keys'],
    ['fewer times than messages', { t: [1], v: [1, 2] }, '2 messages with 1 times and 2 data'],
    ['fewer data than messages', { v: [1] }, '2 messages with 2 times and 1 data'],
    ['a time beyond the calendar', { k: ['a'], c: [{ t: [9e15, 0] }] }, 'Invalid time value'],
    ['a column that says nothing', { k: ['a'], c: [{}] }, 'invalid_union'],
    ['an unknown field', { v: [1, 2], extra: 1 }, 'unrecognized_keys'],
  ])('refuses %s', (_, bad, message) => {
    expect(() => unpackBatch(packGroups({ ...group, ...bad }))).toThrow(message);
  });

  it('refuses truncated data and data that is not a batch', () => {
    const packed = packBatch([item(1, {})], historical);
    expect(() => unpackBatch(packed.subarray(0, packed.length - 5))).toThrow('unexpected end of file');
    expect(() => unpackBatch(Buffer.from('{"time":1}'))).toThrow('incorrect header check');
    expect(() => unpackBatch(pack('[]'))).toThrow('expected object');
  });
});

it('more text than a reader would inflate is refused by the writer, in bytes and not in characters', () => {
  const long = item(1, '\u20ac'.repeat(batch_text_max / 3));
  expect(() => packBatch([long], historical)).toThrow(RangeError);
  expect(roundTrip([item(1, 'e'.repeat(batch_text_max - 1_000))])).toHaveLength(1);
});

it('data that is no JSON is refused by the writer', () => {
  expect(() => writeBatch([item(1, 0, { data: '{"lat":' })], historical)).toThrow(SyntaxError);
});

it('a packed batch is the written text, deflated', () => {
  const items = [item(1, { a: 1 }), item(2, { a: 2 })];
  expect(inflateSync(packBatch(items, historical)).toString()).toBe(writeBatch(items, historical));
});

/** Positions of drones that wander, as a drone driver rounds them. */
function flight(count: number, drones: number): BatchItem[] {
  let state = 7;
  const random = (): number => (state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32) / 2 ** 32 - 0.5;
  const round = (value: number, decimals: number): number =>
    Math.round(value * 10 ** decimals) / 10 ** decimals;
  const places = Array.from({ length: drones }, (_, n) => ({
    n,
    lat: 47 + n / 100,
    lon: 8.5,
    alt: 500,
    speed: 8,
    heading: 90,
  }));
  return Array.from({ length: count }, (_, seq) => {
    const at = places[seq % drones]!;
    at.lat += 0.00004 * random();
    at.lon += 0.00004 * random();
    at.alt += 0.4 * random();
    at.speed = Math.abs(at.speed + random());
    at.heading = (at.heading + 5 * random() + 360) % 360;
    const data = {
      lat: round(at.lat, 7),
      lon: round(at.lon, 7),
      alt_m: round(at.alt, 2),
      ground_speed: round(at.speed, 2),
      heading: round(at.heading, 2),
      alt_amsl_m: round(at.alt - 47.3, 2),
      relative_alt_m: round(at.alt - 480, 2),
    };
    const channel = `feed/0f8c1a52-6d1e-5b7a-9c3d-00000000000${at.n}/gps`;
    const time_ms = 1_795_000_000_000 + 500 * Math.floor(seq / drones) + 7 * at.n + Math.round(6 * random());
    return item(seq, data, { channel, time_ms });
  });
}
