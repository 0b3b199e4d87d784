/** A short fuzzing of the framer; the long one is `test/faults/campaigns/mavlink-fuzz.long.ts`. */
import { expect, it } from 'vitest';
import { frame_length_max } from '../../../../../drivers/mavlink/wire/frame.ts';
import { fuzz } from './fuzz.ts';

it.each([1, 2, 3])(
  '300,000 bytes of frames, spoiled frames and noise (seed %i) cost no intact frame',
  (seed) => {
    const { intact, found, invented, pending_max } = fuzz({ seed, bytes: 300_000 });
    expect(intact).toBeGreaterThan(1_000);
    expect(found).toBe(intact);
    expect(invented).toBeLessThan(3);
    expect(pending_max).toBeLessThan(frame_length_max);
  },
);
