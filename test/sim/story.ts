/** A story: a setting and what happens when, all drawn from a seed. */
import type { Action } from './action.ts';
import { faultKinds, faults } from './faults/faults.ts';
import { drawPlot } from './faults/plots.ts';
import { Rng } from './world/rng.ts';
import type { Setting } from './scene.ts';

export interface Story {
  readonly seed: string;
  readonly setting: Setting;
  /** By time. */
  readonly actions: readonly Action[];
}

/** Most stories are short; some reach the big numbers. */
type Shape = 'small' | 'long' | 'crowd' | 'tight' | 'plot';

export function drawStory(seed: string): Story {
  const rng = new Rng(`story/${seed}`);
  const shape = rng.pick<Shape>([
    ...Array.from({ length: 14 }, (): Shape => 'small'),
    ...Array.from({ length: 5 }, (): Shape => 'tight'),
    ...Array.from({ length: 8 }, (): Shape => 'plot'),
    'long',
    'crowd',
  ]);
  const setting = drawSetting(rng, shape, seed);
  const actions = drawActions(rng, setting, shape);
  // A plot that began late is told to its end.
  const last_ms = actions.at(-1)?.at_ms ?? 0;
  const duration_ms = Math.max(setting.duration_ms, last_ms + 1_000);
  return { seed, setting: { ...setting, duration_ms }, actions };
}

function drawSetting(rng: Rng, shape: Shape, seed: string): Setting {
  const is_tight = shape === 'tight' || (shape === 'crowd' && rng.chance(0.4));
  const rows = shape === 'crowd' ? 4_000 : 1_500;
  // One message at a time over a long link takes longer for so many than is waited for.
  const window_min = shape === 'crowd' ? 4 : 1;
  return {
    duration_ms: shape === 'long' ? rng.scale(120_000, 400_000) : rng.scale(8_000, 90_000),
    assets: shape === 'crowd' ? rng.int(10, 40) : rng.int(1, 4),
    feed_every_ms: rng.chance(0.1) ? 0 : Math.round(rng.scale(60, 3_000)),
    event_every_ms: rng.chance(0.3) ? 0 : Math.round(rng.scale(200, 10_000)),
    latency_ms: rng.scale(1, 400),
    kit: {
      ack: rng.pick(['auto', 'auto', 'auto', 'cloud', 'broker']),
      protocol: rng.pick(['auto', 'auto', 'auto', '5', '3.1.1']),
      packet_ms: rng.chance(0.2) ? 1_000 : 0,
      window_messages: Math.max(window_min, rng.pick([1, 4, 16, 64, 64, 64])),
      rows_max: is_tight ? rng.int(60, rows) : 5_000_000,
      bytes_max: bytesMaxOf(new Rng(`bytes/${seed}`), shape),
    },
    service_protocol: rng.chance(0.15) ? '3.1.1' : 'auto',
    isReordering: rng.chance(0.25),
    hasReserve: rng.chance(0.1),
    isSynced: rng.chance(0.9),
  };
}

/** In some stories bytes, not rows, are what fills the buffer. */
function bytesMaxOf(rng: Rng, shape: Shape): number {
  const is_tight = (shape === 'tight' && rng.chance(0.5)) || (shape === 'crowd' && rng.chance(0.2));
  if (!is_tight) return 512 * 1024 * 1024;
  return Math.round(rng.scale(12_000, shape === 'crowd' ? 1_000_000 : 300_000));
}

/** Swarm testing: each story knows only some kinds of faults, so that none hides what another would show. */
function drawActions(rng: Rng, { duration_ms }: Setting, shape: Shape): readonly Action[] {
  // A plot is seen best with little beside it.
  const share = shape === 'plot' ? rng.pick([0, 0, 0.1]) : rng.pick([0.15, 0.3, 0.5]);
  const chosen = faultKinds.filter((kind) => rng.chance(faults[kind].is_work ? 0.6 : share));
  const actions: Action[] = [];
  const often = rng.scale(1, 6);
  for (const kind of chosen) {
    const { per_minute, draw } = faults[kind];
    const mean = Math.max(1, (per_minute * often * Math.min(duration_ms, 120_000)) / 60_000);
    const count = Math.min(60, Math.round(rng.between(0.5, 1.5) * mean));
    for (let i = 0; i < count; i++) {
      const at_ms = Math.round(rng.between(500, duration_ms));
      actions.push({ ms: 0, n: 0, how: '', ...draw(rng), at_ms, kind });
    }
  }
  if (shape === 'crowd') actions.push(...crowd(rng, duration_ms));
  if (shape === 'plot' || rng.chance(0.1)) actions.push(...drawPlot(rng, rng.between(500, duration_ms)));
  return actions.sort((a, b) => a.at_ms - b.at_ms);
}

/** Big numbers: much is said while the kit is offline. */
function crowd(rng: Rng, duration_ms: number): readonly Action[] {
  const offline_ms = Math.round(duration_ms / 2);
  const down: Action = { at_ms: 300, kind: 'down', ms: offline_ms, n: 0, how: 'kit' };
  const share = rng.pick([0, 2, 3, 8]);
  // Every other message an alarm: they go first, and leave more holes than the service counts ranges.
  const total = share === 2 ? rng.int(21_000, 24_000) : Math.round(rng.scale(3_000, 16_000));
  const parts = rng.pick([1, 4, 12]);
  return [
    ...(rng.chance(0.8) ? [down] : []),
    ...Array.from({ length: parts }, (_, index): Action => {
      const at_ms = Math.round(((index + 0.5) * offline_ms) / parts) + 400;
      return { at_ms, kind: 'burst', ms: 0, n: Math.round(total / parts), how: String(share) };
    }),
    ...(rng.chance(0.4) ? [{ at_ms: offline_ms + 100, kind: 'stop' as const, ms: 500, n: 0, how: '' }] : []),
  ];
}
