/** Buckets of a time zone. */
import { expect, it } from 'vitest';
import { isZone } from '../../../../src/cloud/api/times.ts';
import { Zone } from '../../../../src/cloud/history/reading/zone.ts';

const hour_s = 3_600;
const day_s = 86_400;

it.each([
  // Time, zone, seconds of a bucket, start of its bucket.
  ['2026-11-21T10:20:00Z', 'Europe/Zurich', day_s, '2026-11-20T23:00:00Z'],
  ['2026-03-29T12:00:00Z', 'Europe/Zurich', day_s, '2026-03-28T23:00:00Z'],
  ['2026-03-29T22:30:00Z', 'Europe/Zurich', day_s, '2026-03-29T22:00:00Z'],
  ['2026-10-25T22:30:00Z', 'Europe/Zurich', day_s, '2026-10-24T22:00:00Z'],
  // The hour that comes twice is two: timescale/timescaledb#4884.
  ['2026-10-25T00:30:00Z', 'Europe/Zurich', hour_s, '2026-10-25T00:00:00Z'],
  ['2026-10-25T01:30:00Z', 'Europe/Zurich', hour_s, '2026-10-25T01:00:00Z'],
  // None begins behind its time: timescale/timescaledb#9136.
  ['2024-11-03T05:30:00Z', 'America/New_York', hour_s, '2024-11-03T05:00:00Z'],
  ['2024-11-03T06:30:00Z', 'America/New_York', hour_s, '2024-11-03T06:00:00Z'],
  ['2021-03-25T22:10:00Z', 'Asia/Amman', day_s, '2021-03-25T22:00:00Z'],
  ['2026-11-21T18:20:00Z', 'Asia/Kathmandu', day_s, '2026-11-21T18:15:00Z'],
  ['2026-11-21T10:20:00Z', 'UTC', day_s, '2026-11-21T00:00:00Z'],
])('puts %s in %s into the bucket of %i s that begins at %s', (time, name, bucket_s, start) => {
  const found_ms = new Zone(name).startOf(Date.parse(time), bucket_s * 1_000);
  expect(new Date(found_ms).toISOString()).toBe(new Date(start).toISOString());
});

it.each(['Europe/Zurich', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Amman', 'America/St_Johns'])(
  'begins no bucket behind its time, and none before the last one, through a year of %s',
  (name) => {
    const zone = new Zone(name);
    const wrong: string[] = [];
    for (const bucket_s of [hour_s, 6 * hour_s, day_s]) {
      let before_ms = -Infinity;
      for (let time_ms = Date.UTC(2026, 0, 1); time_ms < Date.UTC(2027, 0, 1); time_ms += 1_800_000) {
        const start_ms = zone.startOf(time_ms, bucket_s * 1_000);
        const isLong = time_ms - start_ms > (bucket_s + hour_s) * 1_000;
        if (start_ms > time_ms || start_ms < before_ms || isLong) wrong.push(new Date(time_ms).toISOString());
        before_ms = start_ms;
      }
    }
    expect(wrong).toEqual([]);
  },
);

it.each([
  ['Europe/Zurich', true],
  ['UTC', true],
  ['Europe/Nowhere', false],
  ['', false],
])('knows whether %j is a zone', (name, expected) => expect(isZone(name)).toBe(expected));
