/** What requests about the history may ask, and the span that they mean. */
import { describe, expect, it } from 'vitest';
import {
  eraseQuery,
  eventQuery,
  exportQuery,
  history_limit_max,
  historyQuery,
  points_max,
  seriesQuery,
  spanOf,
  trackQuery,
} from '../../../../../src/cloud/http/history/query.ts';

const hour_ms = 3_600_000;
const day_ms = 24 * hour_ms;
const noon_ms = Date.parse('2026-11-21T12:00:00Z');

describe('The times of a query', () => {
  it.each([
    ['2026-11-21T12:00:00Z', noon_ms],
    ['2026-11-21T13:00:00+01:00', noon_ms],
    [String(noon_ms), noon_ms],
  ])('are read from %s', (from, from_ms) => {
    expect(historyQuery.parse({ from })).toMatchObject({ from: from_ms });
  });

  it.each(['', 'yesterday', '12:00', '-5 days', '2026-13-01', '9'.repeat(41)])('are refused: %s', (from) => {
    expect(historyQuery.safeParse({ from }).success).toBe(false);
  });

  it('must name the moment before which an erasure erases', () => {
    expect(eraseQuery.safeParse({}).success).toBe(false);
    expect(eraseQuery.parse({ before: String(noon_ms) })).toEqual({ before: noon_ms });
  });
});

describe('The span of a query', () => {
  it('is the day before its end', () => {
    expect(spanOf({ to: noon_ms }, 0)).toEqual({ from_ms: noon_ms - day_ms, to_ms: noon_ms });
  });

  it('ends a day ahead when no end is given, as the clock of a kit may be ahead', () => {
    expect(spanOf({ from: 5 }, noon_ms)).toEqual({ from_ms: 5, to_ms: noon_ms + day_ms });
    expect(spanOf({}, noon_ms)).toEqual({ from_ms: noon_ms + hour_ms - day_ms, to_ms: noon_ms + day_ms });
  });
});

describe('A query', () => {
  it('has defaults for what is left out', () => {
    expect(historyQuery.parse({})).toEqual({ order: 'desc', limit: 500 });
    expect(eventQuery.parse({})).toEqual({ order: 'desc', limit: 100 });
    expect(seriesQuery.parse({ select: 'kit:battery' })).toEqual({
      select: ['kit:battery'],
      points: 300,
      shape: 'columns',
    });
    expect(trackQuery.parse({})).toEqual({ tolerance_m: 0, gap_s: 300, format: 'geojson' });
    expect(exportQuery.parse({})).toEqual({ format: 'ndjson' });
  });

  it('reads lists without empty entries', () => {
    expect(eventQuery.parse({ types: 'motion,,task,' })).toMatchObject({ types: ['motion', 'task'] });
    expect(eventQuery.safeParse({ types: ',' }).success).toBe(false);
  });

  it.each([
    ['limit', 0],
    ['limit', history_limit_max + 1],
    ['limit', 1.5],
    ['limit', 'many'],
    ['order', 'newest'],
    ['class', 'secret'],
    ['feed', 'x'.repeat(65)],
    ['cursor', 'x'.repeat(4_097)],
  ])('refuses %s %s', (name, value) => {
    expect(historyQuery.safeParse({ [name]: String(value) }).success).toBe(false);
  });

  it.each([
    ['points', 0],
    ['points', points_max + 1],
    ['bucket_s', 0],
    ['bucket_s', 31 * 86_400 + 1],
    ['shape', 'xml'],
    ['select', 'x'.repeat(4_097)],
  ])('of series refuses %s %s', (name, value) => {
    expect(seriesQuery.safeParse({ select: 'kit:battery', [name]: String(value) }).success).toBe(false);
  });

  it.each([
    ['tolerance_m', -1],
    ['tolerance_m', 10_001],
    ['gap_s', 0],
    ['gap_s', 86_401],
    ['format', 'shp'],
  ])('of a track refuses %s %s', (name, value) => {
    expect(trackQuery.safeParse({ [name]: String(value) }).success).toBe(false);
  });
});
