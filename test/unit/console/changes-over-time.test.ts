/** What changes while the page stays open: settings, and links beyond those that it remembers. */
import { afterEach, describe, expect, it } from 'vitest';
import type { ServerFrame } from '../../../src/console/types.d.ts';
import { clock, locale, number } from '../../../src/console/units.ts';
import { settings } from '../../../src/console/settings.ts';
import { emptyWorld, takeFrame } from '../../../src/console/world/world.ts';

const minute_ms = 60_000;

describe('numbers and times', () => {
  afterEach(() => {
    locale.now = 'en';
    settings.zone = 'local';
  });

  it('follow the language after they were formatted in another one', () => {
    expect(number(1_234.56, 1)).toBe('1,234.6');
    locale.now = 'de';
    expect(number(1_234.56, 1)).toBe('1.234,6');
    expect(number(1_234.56)).toBe('1.235');
  });

  it('follow the zone of the settings, with the day where it is not today', () => {
    const then = new Date(2020, 0, 31, 23, 30, 15);
    expect(clock(then.getTime())).toBe('Jan 31, 23:30');
    settings.zone = 'utc';
    const inUtc = then.toISOString();
    expect(clock(then.getTime(), { isExact: true })).toContain(inUtc.slice(11, 19));
  });

  it('leave out the day of today', () => {
    expect(clock(Date.now())).toMatch(/^\d\d:\d\d$/u);
  });
});

describe('changes of links', () => {
  it('are kept for remembered links when there is no room for others', () => {
    const world = emptyWorld();
    const report = (name: string, status: string, minutes: number): void =>
      takeFrame(world, {
        type: 'feed',
        asset_id: 'gateway',
        feed: 'link_status',
        message: { time: new Date(minutes * minute_ms).toISOString(), data: { name, status } },
      } as unknown as ServerFrame);
    for (let i = 0; i < 70; i += 1) report(`eth${i}`, 'online', i);
    expect(world.linkEdges.size).toBe(64);
    report('eth3', 'offline', 100);
    expect(world.linkEdges.get('eth3')).toMatchObject({ status: 'offline', time_ms: 100 * minute_ms });
    expect(world.linkEdges.has('eth69')).toBe(false);
  });
});
