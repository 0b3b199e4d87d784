/** The conformance suite itself, on a driver in memory that does all that is asked. */
import { describe } from 'vitest';
import { memoryDevice } from '../../fakes/scripted-driver.ts';
import { driverConformance } from '../../support/drivers/driver-conformance.ts';

describe('a driver in memory', () => {
  const device = memoryDevice();
  const set = (present: boolean) => async () => {
    device.present = present;
  };
  driverConformance({
    driver: device.driver,
    options: () => ({ poll_ms: 5 }),
    peer: { start: set(true), lose: set(false), restore: set(true), stop: set(false) },
  });
});
