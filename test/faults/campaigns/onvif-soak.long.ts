/** A camera that is rebooted, cut off and set to wrong times a hundred times. */
import { expect, it } from 'vitest';
import { soak } from '../../support/cameras/onvif-soak.ts';

it('receives motion after a hundred faults, with the memory use of after fifty', async () => {
  const { heap_growth_mb } = await soak(100);
  expect(heap_growth_mb).toBeLessThan(30);
});
