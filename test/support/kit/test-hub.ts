/** A hub that ends with its test, and drivers whose host the test holds in its hands. */
import { onTestFinished } from 'vitest';
import { aborted } from '../../../src/platform/time.ts';
import { type DroneHost, scriptedDriver } from '../../fakes/scripted-driver.ts';
import { hubLab } from './hub-lab.ts';

export function testHub(more: Parameters<typeof hubLab>[0] = {}) {
  const lab = hubLab(more);
  onTestFinished(lab.stop);
  return {
    ...lab,
    /** Runs a driver of this name until the hub stops, and gives its host. */
    async hostOf(name = 'drones'): Promise<DroneHost> {
      const host = Promise.withResolvers<DroneHost>();
      const driver = scriptedDriver(async (given) => {
        host.resolve(given);
        await aborted(given.signal);
      });
      void lab.run(driver, name);
      return host.promise;
    },
  };
}
