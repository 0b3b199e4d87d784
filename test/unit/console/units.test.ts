/** Quantities, times of day and ages as the console writes them. The browser's modules run here as they are. */
import { afterEach, describe, expect, it } from 'vitest';
import type { FeedMessage, LiveAsset, Now } from '../../../src/console/types.d.ts';
import { settings } from '../../../src/console/settings.ts';
import * as ages from '../../../src/console/world/age.ts';
import * as units from '../../../src/console/units.ts';

afterEach(() => {
  Object.assign(settings, { units: 'metric', zone: 'local' });
  units.locale.now = 'en';
});

/** With a common space in place of the one that does not break. */
const spaced = (text: string): string => text.replaceAll('\u00a0', ' ');

describe('A distance', () => {
  it.each([
    ['metric', 999, '999 m'],
    ['metric', 1_500, '1.5 km'],
    ['metric', 12_345, '12 km'],
    ['nautical', 999, '999 m'],
    ['nautical', 1_852, '1 nmi'],
    ['nautical', 4_630, '2.5 nmi'],
    ['imperial', 30.48, '100 ft'],
    ['imperial', 1_609.344, '1 mi'],
    ['imperial', 24_140.16, '15 mi'],
  ])('in %s units of %d m is %s', (system, m, expected) => {
    settings.units = system;
    expect(spaced(units.distanceText(m))).toBe(expected);
  });
});

describe('A height and a speed', () => {
  it.each([
    ['metric', '120 m', '10 m/s'],
    ['nautical', '394 ft', '19.4 kn'],
    ['imperial', '394 ft', '22 mph'],
  ])('in %s units are %s and %s', (system, height, speed) => {
    settings.units = system;
    expect(spaced(units.measureText(units.heightIn(120)))).toBe(height);
    expect(spaced(units.measureText(units.speedIn(10)))).toBe(speed);
  });
});

describe('A quantity', () => {
  it('is written in the digits of the language, and its unit does not go to the next line', () => {
    expect(units.quantity(1_234.56, 'kB', 1)).toBe('1,234.6\u00a0kB');
    units.locale.now = 'de';
    expect(units.quantity(1_234.56, 'kB', 1)).toBe('1.234,6\u00a0kB');
    expect(units.number(1_234.56)).toBe('1.235');
  });
});

describe('A time of day', () => {
  const morning_ms = Date.parse('2020-03-04T05:06:07Z');

  it('has the day when it is not today, and seconds on request', () => {
    settings.zone = 'utc';
    expect(units.clock(morning_ms)).toMatch(/4.*05:06$/u);
    expect(units.clock(morning_ms, { isExact: true })).toMatch(/Mar.*05:06:07$/u);
    expect(units.clock(morning_ms, { isTime: true })).toBe('05:06');
    expect(units.clock(morning_ms, { isDay: true })).toBe('Mar 4');
  });

  it('of a moment of today has no day', () => {
    settings.zone = 'utc';
    const now_ms = Date.now();
    expect(units.clock(now_ms)).toBe(new Date(now_ms).toISOString().slice(11, 16));
  });

  it('follows the language and the zone when they change', () => {
    const then = new Date(2020, 0, 31, 23, 30, 15);
    expect(units.clock(then.getTime())).toBe('Jan 31, 23:30');
    settings.zone = 'utc';
    expect(units.clock(then.getTime(), { isExact: true })).toContain(then.toISOString().slice(11, 19));
    units.locale.now = 'de';
    expect(units.clock(morning_ms, { isDay: true })).toBe('4. März');
    expect(units.zoneName()).toBe('UTC');
    settings.zone = 'local';
    expect(units.zoneName()).toBe(Intl.DateTimeFormat().resolvedOptions().timeZone);
  });

  it('that cannot be read is empty', () => {
    expect(units.clock(Number.NaN)).toBe('');
  });
});

describe('A duration', () => {
  it.each([
    [-5, '0 s'],
    [0, '0 s'],
    [59_999, '59 s'],
    [60_000, '1 min'],
    [3_599_999, '59 min'],
    [3_900_000, '1 h 05 min'],
    [86_400_000, '1 d 0 h'],
    [187_200_000, '2 d 4 h'],
  ])('of %d ms is %s', (ms, expected) => {
    expect(units.duration(ms)).toBe(expected);
  });
});

describe('The age of a value', () => {
  const time_ms = Date.parse('2026-11-21T10:00:00.000Z');
  const ago = (ms: number): string => new Date(time_ms - ms).toISOString();
  const drone = { id: 'a', status: 'online', protocol: 'mavlink', last_seen_at: ago(9_000) } as LiveAsset;

  interface Scene {
    readonly feed?: Readonly<Record<string, number>>;
    readonly period_ms?: number;
    readonly part?: Readonly<Record<string, number>>;
    readonly source?: string;
    readonly stale?: boolean;
    readonly online?: boolean;
    readonly link?: 'live' | 'lost';
  }
  function now({
    feed = {},
    period_ms,
    part = {},
    source = 'satellite',
    stale = false,
    online = true,
    link = 'live',
  }: Scene): Now {
    const times = Object.fromEntries(Object.entries(part).map(([name, ms]) => [name, ago(ms)]));
    const feeds = Object.fromEntries(
      Object.entries(feed).map(([name, ms]) => [name, { time: ago(ms), data: {} }]),
    );
    const periods = Object.keys(feed).map((name) => [`a ${name}`, period_ms] as const);
    const world = {
      kit: { online, times, location: { source, stale } },
      feeds: new Map([['a', feeds]]),
      periods: new Map(period_ms === undefined ? [] : periods),
    };
    return { world, link: { state: link, since_ms: 0 }, time_ms, isInStep: true } as unknown as Now;
  }

  it.each<[string, Scene, number, boolean]>([
    ['a feed of unknown rate is old after half a minute', { feed: { gps: 30_001 } }, 30_001, true],
    ['a feed of unknown rate is not old before', { feed: { gps: 30_000 } }, 30_000, false],
    ['a fast feed is old after six seconds', { feed: { gps: 6_001 }, period_ms: 100 }, 6_001, true],
    [
      'a slow feed is old after three of its intervals',
      { feed: { gps: 60_001 }, period_ms: 20_000 },
      60_001,
      true,
    ],
    ['a slow feed is not old before', { feed: { gps: 60_000 }, period_ms: 20_000 }, 60_000, false],
    [
      'a very slow feed is old after five minutes',
      { feed: { gps: 300_001 }, period_ms: 3_600_000 },
      300_001,
      true,
    ],
    ['any feed is old while the kit is offline', { feed: { gps: 10 }, online: false }, 10, true],
    ['any feed is old while the page has no link', { feed: { gps: 10 }, link: 'lost' }, 10, true],
  ])('%s', (_, scene, age_ms, isOld) => {
    expect(ages.feedFreshness(drone, 'gps', now(scene))).toEqual({ age_ms, isOld });
  });

  it('does not make a report of a change old while the asset is reachable', () => {
    const scene = { feed: { motion: 86_400_000 }, period_ms: 1_000 };
    expect(ages.feedFreshness(drone, 'motion', now(scene)).isOld).toBe(false);
    const away = { ...drone, status: 'offline' } as LiveAsset;
    expect(ages.feedFreshness(away, 'motion', now(scene)).isOld).toBe(true);
  });

  it('that was never received is not known, and old', () => {
    expect(ages.feedFreshness(drone, 'gps', now({}))).toEqual({ age_ms: null, isOld: true });
    expect(ages.partFreshness('location', now({}))).toEqual({ age_ms: null, isOld: true });
  });

  it('of a fix is what the kit says, as long as it repeats it, unless a person entered it', () => {
    const part = { location: ages.kit_old_ms + 1 };
    expect(ages.partFreshness('location', now({ part })).isOld).toBe(true);
    expect(ages.partFreshness('location', now({ part, source: 'manual' })).isOld).toBe(false);
    expect(ages.partFreshness('location', now({ part: { location: 60_000 } })).isOld).toBe(false);
    expect(ages.partFreshness('location', now({ part: { location: 10 }, stale: true })).isOld).toBe(true);
    expect(ages.partFreshness('gateway', now({ part: { gateway: ages.kit_old_ms } })).isOld).toBe(false);
    expect(ages.partFreshness('gateway', now({ part: { gateway: ages.kit_old_ms + 1 } })).isOld).toBe(true);
  });

  it('of an asset is that of its newest message', () => {
    const feeds = { gps: { time: ago(2_000) }, battery: { time: ago(20_000) } } as unknown as Record<
      string,
      FeedMessage
    >;
    expect(ages.lastMessageTime(drone, feeds)).toBe(ago(2_000));
    expect(ages.lastMessageTime(drone, undefined)).toBe(ago(9_000));
  });
});
