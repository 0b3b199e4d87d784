/** What counts as a crashed multicopter: an angle that none hovers at, kept for 3 s without moving. */
import { expect, it } from 'vitest';
import { Overturned } from '../../../../../drivers/mavlink/reports/overturned.ts';
import { blank } from '../../../../../drivers/mavlink/wire/messages.ts';

const degrees = Math.PI / 180;
const attitude = blank('ATTITUDE');
const position = { ...blank('GLOBAL_POSITION_INT'), lat: 47_0000000, lon: 8_0000000, alt: 488_000 };

interface Shown {
  readonly roll_deg?: number;
  readonly pitch_deg?: number;
  readonly alt_m?: number;
  readonly vx_mps?: number;
  readonly vz_mps?: number;
  readonly hasAttitude?: boolean;
  readonly hasPosition?: boolean;
}

/** Returns whether it counts as crashed at any time of 10 s, with four attitudes and two positions a second. */
function isEverOverturned(shownAt: (s: number) => Shown): boolean {
  const overturned = new Overturned();
  let isOverturned = false;
  for (let now_ms = 0; now_ms <= 10_000; now_ms += 250) {
    const shown = shownAt(now_ms / 1_000);
    const { roll_deg = 0, pitch_deg = 0, alt_m = 488, vx_mps = 0, vz_mps = 0 } = shown;
    const fields = { ...attitude, roll: roll_deg * degrees, pitch: pitch_deg * degrees };
    if (shown.hasAttitude !== false) overturned.receive({ name: 'ATTITUDE', fields }, now_ms);
    if (now_ms % 500 === 0 && shown.hasPosition !== false) {
      const at = { ...position, alt: alt_m * 1_000, vx: vx_mps * 100, vz: vz_mps * 100 };
      overturned.receive({ name: 'GLOBAL_POSITION_INT', fields: at }, now_ms);
    }
    isOverturned ||= overturned.isEvident(now_ms);
  }
  return isOverturned;
}

const cases: readonly (readonly [what: string, shownAt: (s: number) => Shown, isCrashed: boolean])[] = [
  ['lies on its side', () => ({ roll_deg: 98 }), true],
  ['lies on its back', () => ({ roll_deg: 178, pitch_deg: -3 }), true],
  [
    'stands on its nose, shaken by its motors',
    (s) => ({ pitch_deg: 80, vx_mps: s % 1 === 0 ? 0.6 : -0.4 }),
    true,
  ],
  ['slides to a stop on its back', (s) => ({ roll_deg: 170, vx_mps: Math.max(0, 4 - s) }), true],
  ['hovers', (s) => ({ roll_deg: 2 * Math.sin(s), vx_mps: 0.05 }), false],
  ['hovers in a storm', () => ({ roll_deg: 45, pitch_deg: 35, vx_mps: 0.3 }), false],
  ['flips', (s) => ({ roll_deg: s > 4 && s < 5 ? 180 : 0 }), false],
  ['races at a steep angle', () => ({ pitch_deg: -75, vx_mps: 35 }), false],
  ['tumbles as it falls', (s) => ({ roll_deg: 180, alt_m: 900 - 20 * s, vz_mps: 20 }), false],
  ['falls, and its speed is not reported', (s) => ({ roll_deg: 120, alt_m: 900 - 5 * s }), false],
  ['descends fast', (s) => ({ roll_deg: 10, alt_m: 600 - 5 * s, vz_mps: 5 }), false],
  ['stands on the ground', () => ({}), false],
  ['lies on its side for 2 s', (s) => ({ roll_deg: s > 4 && s < 6 ? 90 : 0 }), false],
  ['reports no more attitude', (s) => ({ roll_deg: 98, hasAttitude: s < 2 }), false],
  ['reports no position', () => ({ roll_deg: 98, hasPosition: false }), false],
  ['has no attitude', () => ({ roll_deg: Number.NaN }), false],
];

it.each(cases)('A multicopter that %s is told from a crashed one', (_what, shownAt, isCrashed) => {
  expect(isEverOverturned(shownAt)).toBe(isCrashed);
});
