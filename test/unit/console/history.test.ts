/** What the page computes from the history: intervals, interruptions, tasks, tracks, completeness. */
import { describe, expect, it } from 'vitest';
import {
  detectionsOf,
  eventsOf,
  interruptionsOf,
  intervalsOf,
  tasksOf,
} from '../../../src/console/world/history/events.ts';
import type { Event } from '../../../src/console/types.d.ts';
import { trackOf, placeAt } from '../../../src/console/world/history/track.ts';
import { countsOf } from '../../../src/console/world/history/history.ts';
import { observedIn, cellsOf } from '../../../src/console/world/history/cells.ts';

const event = (time_ms: number, type: string, data: Event['data']): Event => ({
  time_ms,
  type,
  kit_id: '',
  asset_id: 'a',
  id: '',
  data,
});

describe('Interruptions', () => {
  const edge = (time_ms: number, name: string, status: string, reason: string | null = null): Event =>
    event(time_ms, 'link_status', { name, status, reason });

  it('last from the first report of offline to the next other state, each link by its own', () => {
    const events = [
      edge(1, 'a', 'online'),
      edge(2, 'a', 'offline', 'no signal'),
      edge(3, 'b', 'offline'),
      edge(4, 'a', 'offline', 'no answer'),
      edge(5, 'a', 'standby'),
    ];
    expect(interruptionsOf(events)).toEqual([
      { name: 'b', since_ms: 3, until_ms: null, reason: '' },
      { name: 'a', since_ms: 2, until_ms: 5, reason: 'no signal' },
    ]);
  });

  it('make cells of the strip: none, part, all, and unknown where the link was not observed', () => {
    const samples = observedIn({
      observed: [50, 250, 750, 850],
      gap_ms: 100,
      gaps: [{ name: 'a', since_ms: 200, until_ms: 350, reason: '' }],
      from_ms: 0,
      to_ms: 9_600,
    });
    // 96 cells of 100 ms.
    const cells = cellsOf(samples, 0, 9_600).slice(0, 11).join(' ');
    expect(cells).toBe('all all none part unknown unknown unknown all all all unknown');
  });
});

describe('Detections', () => {
  it('end when their type is not seen any more', () => {
    const seen = (time_ms: number, ...types: readonly string[]): Event =>
      event(time_ms, 'ai_detection', { detected: types.length > 0, types });
    const events = [seen(1, 'people'), seen(2, 'people', 'vehicle'), seen(3, 'vehicle'), seen(4)];
    expect(intervalsOf(events, detectionsOf)).toEqual([
      { name: 'vehicle', since_ms: 2, until_ms: 4, reason: '' },
      { name: 'people', since_ms: 1, until_ms: 3, reason: '' },
    ]);
  });
});

describe('Tasks of the history', () => {
  it('have the newest state and the time of their first report', () => {
    const report = (time_ms: number, status: string): Event =>
      event(time_ms, 'task', { task_id: 't', asset_id: 'a', command_name: 'beep', status, result: {} });
    expect(tasksOf([report(2_000, 'completed'), report(1_000, 'running')])).toMatchObject([
      { id: 't', status: 'completed', created_at: new Date(1_000).toISOString() },
    ]);
  });

  it('ignore what is no event', () => {
    expect(
      eventsOf({ events: [null, 3, { time: 'never', data: {} }, { time: '2026-11-21', data: 1 }] }),
    ).toEqual([]);
    expect(eventsOf(undefined)).toEqual([]);
  });
});

describe('A track', () => {
  const times = ['2026-11-21T10:00:00Z', '2026-11-21T10:00:10Z'];
  const feature = {
    properties: { times: [times, ['2026-11-21T11:00:00Z']] },
    geometry: {
      coordinates: [
        [
          [8, 47, 400],
          [8.1, 47.2],
        ],
        [[9, 48]],
      ],
    },
  };
  const begin_ms = Date.parse(times[0] ?? '');

  it('is followed between two fixes, and stays at the last fix before a gap', () => {
    const track = trackOf(feature);
    expect(placeAt(track, begin_ms - 1)).toBeUndefined();
    expect(placeAt(track, begin_ms + 5_000)).toEqual({ lat: 47.1, lon: 8.05, time_ms: begin_ms });
    expect(placeAt(track, begin_ms + 60_000)).toMatchObject({ lat: 47.2, lon: 8.1 });
    expect(placeAt(track, begin_ms + 7_200_000)).toMatchObject({ lat: 48, lon: 9 });
  });

  it('keeps at most about 1,500 points, with the ends of its lines', () => {
    const coordinates = [Array.from({ length: 10_000 }, (_, i) => [i / 1e4, 47])];
    const all = [Array.from({ length: 10_000 }, (_, i) => new Date(begin_ms + i * 1_000).toISOString())];
    const [line = []] = trackOf({ properties: { times: all }, geometry: { coordinates } });
    expect(line.length).toBeLessThanOrEqual(1_501);
    expect(line.at(-1)?.lon).toBe(0.9999);
  });
});

describe('Completeness', () => {
  it('counts what is missing by its reasons', () => {
    const epochs = [
      {
        received: 10,
        more: 2,
        missing: [
          { messages: 3, reasons: ['evicted'] },
          { messages: 4, reasons: [] },
          { messages: 2, reasons: ['evicted'] },
        ],
      },
      { received: 5, more: 0, missing: [] },
    ];
    expect(countsOf({ epochs })).toEqual({
      received: 15,
      missing: 9,
      more: 2,
      reasons: new Map([
        ['evicted', 5],
        ['', 4],
      ]),
    });
  });
});
