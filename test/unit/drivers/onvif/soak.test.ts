/** A short form of the soak in test/faults. */
import { expect, it } from 'vitest';
import { soak } from '../../../support/cameras/onvif-soak.ts';

it('receives motion after each mishap, and leaves nothing open', async () => {
  await expect(soak(9)).resolves.toBeDefined();
});
