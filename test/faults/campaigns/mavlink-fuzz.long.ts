/** Ten million bytes that are made to confuse the framer of the mavlink driver. */
import { expect, it } from 'vitest';
import { frame_length_max } from '../../../drivers/mavlink/wire/frame.ts';
import { fuzz } from '../../unit/drivers/mavlink/wire/fuzz.ts';

const bytes = 10_000_000;

it('10 million bytes of frames, spoiled frames and noise cost no intact frame, no exception and no time', () => {
  const { intact, found, invented, pending_max, stalls } = fuzz({ seed: 20_261_121, bytes });
  expect(intact).toBeGreaterThan(30_000);
  expect(found).toBe(intact);
  expect(invented).toBeLessThan(20);
  expect(pending_max).toBeLessThan(frame_length_max);
  expect(stalls).toBe(0);
});
