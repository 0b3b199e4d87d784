/** A camera that is rebooted, cut off and set to wrong times a hundred times. */
import { expect, it } from 'vitest';
import { soak } from '../support/onvif-soak.ts';

it('hears motion after a hundred mishaps, with the memory that it had after fifty', async () => {
  const { heap_growth_mb } = await soak(100);
  expect(heap_growth_mb).toBeLessThan(30);
});
