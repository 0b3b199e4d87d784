/** What the page draws of a kit whose clock was an hour ahead and is right now: it goes on with the new times at once. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { ServerFrame, World } from '../../../src/console/types.d.ts';
import { drainsIn, emptyWorld, takeFrame } from '../../../src/console/world/world.ts';

const right_ms = Date.UTC(2026, 10, 21, 10);
const ahead_ms = right_ms + 3_600_000;
const iso = (time_ms: number): string => new Date(time_ms).toISOString();

describe('the page after the clock of the kit stepped back', () => {
  let world: World;
  beforeEach(() => {
    world = emptyWorld();
  });

  const fix = (time_ms: number, lat: number): void =>
    takeFrame(world, {
      type: 'feed',
      asset_id: 'a',
      feed: 'gps',
      message: { time: iso(time_ms), data: { lat, lon: 8 } },
    } as unknown as ServerFrame);
  const kit = (time_ms: number, latency_ms: number): void =>
    takeFrame(world, {
      type: 'kit',
      kit: { times: { wans: iso(time_ms) }, wans: [{ name: 'eth0', latency_ms }] },
    } as unknown as ServerFrame);
  const queue = (time_ms: number, waiting_rows: number, online = true): void =>
    takeFrame(world, {
      type: 'queue',
      queue: { online, as_of: iso(time_ms), waiting_rows },
    } as unknown as ServerFrame);

  it('draws the trail on', () => {
    for (const [n, at_ms] of [ahead_ms, ahead_ms + 4_000, right_ms + 8_000, right_ms + 12_000].entries())
      fix(at_ms, n);
    expect(world.trails.get('a')?.map(({ lat }) => lat)).toEqual([2, 3]);
  });

  it('draws the latency of links on', () => {
    kit(ahead_ms, 10);
    kit(right_ms, 20);
    kit(right_ms, 20);
    kit(right_ms + 1_000, 30);
    expect(world.latencies.get('eth0')?.map(({ value }) => value)).toEqual([20, 30]);
  });

  it('works out from the new reports how long the queue will last', () => {
    queue(ahead_ms, 200);
    queue(right_ms, 100);
    queue(right_ms + 10_000, 80);
    expect(drainsIn(world, right_ms + 20_000)).toBe(40_000);
  });

  it('takes no will for a report of now: it was written when the kit connected', () => {
    queue(right_ms, 100);
    queue(right_ms + 10_000, 80);
    queue(right_ms - 5_000, 300, false);
    expect(drainsIn(world, right_ms + 20_000)).toBe(40_000);
  });
});
