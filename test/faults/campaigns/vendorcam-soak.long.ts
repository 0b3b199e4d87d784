/** The soak of vendor cameras at length: memory stays flat, no session stays open. */
import { expect, it } from 'vitest';
import { soak } from '../support/vendorcam-soak.ts';

const rounds_each = 100;
const growth_max_mb = 30;

it(
  'hundreds of restarts, pulled cables and moods leave memory flat and no session open',
  { timeout: 3_600_000 },
  async () => {
    await soak(rounds_each);
    const before_mb = process.memoryUsage().heapUsed / 1e6;
    for (let part = 0; part < 3; part += 1) await soak(rounds_each);
    expect(process.memoryUsage().heapUsed / 1e6 - before_mb).toBeLessThan(growth_max_mb);
  },
);
