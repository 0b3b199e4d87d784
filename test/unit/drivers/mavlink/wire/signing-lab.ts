/** A signing clock without a file, for tests that sign and verify. */
import type { SigningClock } from '../../../../../drivers/mavlink/wire/signing.ts';

/** Opens one at `ticks`, as at a first start. */
export function clockAt(ticks: number): SigningClock {
  let last = ticks;
  return {
    started_at: 0,
    isTooFarAhead: () => false,
    next: () => ++last,
    now: () => last,
    learn: (received: number) => {
      last = Math.max(last, received);
    },
  };
}
