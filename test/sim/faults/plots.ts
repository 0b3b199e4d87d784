/** Short sequences of what goes wrong together: chance alone would bring them about too seldom. */
import type { Action } from '../action.ts';
import type { Rng } from '../world/rng.ts';

type Part = Partial<Action> & Pick<Action, 'kind'>;

/** Actions with their times from the beginning of the plot. */
type Plot = (rng: Rng) => readonly (readonly [after_ms: number, part: Part])[];

const plots: readonly Plot[] = [
  /** The disk refuses while a command arrives; then the daemon is killed. */
  (rng) => {
    const ms = Math.round(rng.scale(2_000, 20_000));
    return [
      [0, { kind: 'disk_fail', ms, how: 'SQLITE_IOERR_WRITE' }],
      [rng.between(100, ms), { kind: 'command', ms: 300, n: rng.int(0, 99), how: 'move' }],
      [rng.between(ms / 2, ms), { kind: 'kill', ms: Math.round(rng.scale(50, 5_000)) }],
    ];
  },
  /** A command waits in the journal when the disk begins to refuse; the daemon is killed before the disk is well again. */
  (rng) => {
    const ms = Math.round(rng.scale(1_500, 6_000));
    return [
      [0, { kind: 'command', ms: Math.round(rng.scale(300, 3_000)), how: 'move' }],
      [10, { kind: 'command', ms: 300, how: 'move' }],
      [200, { kind: 'disk_fail', ms, how: 'SQLITE_READONLY' }],
      [200 + ms - rng.between(20, 400), { kind: 'kill', ms: Math.round(rng.scale(100, 1_000)) }],
    ];
  },
  /** Much is said at once, and the daemon is told to stop before it is on disk. */
  (rng) => [
    [0, { kind: 'down', ms: 8_000, how: 'kit' }],
    ...(rng.chance(0.6) ? [[5_900, { kind: 'disk_slow', ms: 4_000, n: rng.int(20, 400) }] as const] : []),
    [6_000, { kind: 'burst', n: Math.round(rng.scale(200, 16_000)), how: rng.pick(['0', '3']) }],
    [6_000 + rng.between(1, 400), { kind: 'stop', ms: 500 }],
  ],
  /** The link breaks again and again while little is on its way. */
  (rng) => [
    [0, { kind: 'cut', ms: Math.round(rng.scale(5_000, 40_000)), n: rng.int(20, 80) }],
    ...Array.from(
      { length: 4 },
      (_, index) => [100 + index * 4_000, { kind: 'command', ms: 500, n: index, how: 'move' }] as const,
    ),
  ],
  /** The link comes and goes while the disk refuses. */
  (rng) => {
    const ms = Math.round(rng.scale(3_000, 25_000));
    return [
      [0, { kind: 'down', ms: Math.round(ms / 4), how: 'kit' }],
      [50, { kind: 'burst', n: rng.int(20, 300), how: '2' }],
      [ms / 6, { kind: 'disk_fail', ms, how: 'SQLITE_IOERR_FSYNC' }],
      [ms / 2, { kind: 'reset', how: 'kit' }],
    ];
  },
  /** A backlog meets wrong access rules. */
  (rng) => {
    const ms = Math.round(rng.scale(2_000, 20_000));
    return [
      [0, { kind: 'down', ms, how: 'kit' }],
      [200, { kind: 'burst', n: Math.round(rng.scale(300, 6_000)), how: rng.pick(['0', '1', '3']) }],
      [ms - 100, { kind: 'acl', ms: 25_000, how: rng.pick(['up', 'up', 'event', 'batch']) }],
    ];
  },
  /** The daemon starts again and again on a disk that takes nothing. */
  (rng) => [
    [0, { kind: 'disk_fail', ms: 15_000, how: 'SQLITE_READONLY' }],
    ...[1, 2, 3].map((n) => [n * 3_000 + rng.between(0, 900), { kind: 'kill', ms: 200 }] as const),
  ],
  /** The disk hangs while much is said. */
  (rng) => {
    const ms = Math.round(rng.scale(2_000, 40_000));
    return [
      [0, { kind: 'disk_hang', ms }],
      [300, { kind: 'burst', n: Math.round(rng.scale(50, 4_000)), how: rng.pick(['0', '1', '4']) }],
      [rng.between(400, ms), { kind: 'sync' }],
    ];
  },
  /** Assets change while the link breaks. */
  (rng) =>
    Array.from(
      { length: 12 },
      (_, index) =>
        [
          index * rng.between(100, 900),
          rng.chance(0.4)
            ? { kind: 'reset', how: 'kit' }
            : {
                kind: rng.pick(['there', 'online']),
                n: rng.int(0, 3),
                how: rng.pick(['yes', 'no', 'on', 'off']),
              },
        ] as const,
    ),
];

export function drawPlot(rng: Rng, from_ms: number): readonly Action[] {
  return rng
    .pick(plots)(rng)
    .map(([after_ms, part]) => ({
      ms: 0,
      n: 0,
      how: '',
      ...part,
      at_ms: Math.round(from_ms + after_ms),
    }));
}
