/** A driver whose reported positions a test can read, whatever the hub makes of them. */
import type { Driver, Fix } from '../../../src/toolkit/driver/driver.ts';

export function watchedDriver(driver: Driver): {
  readonly driver: Driver;
  readonly fixes: readonly (Fix | null)[];
} {
  const fixes: (Fix | null)[] = [];
  return {
    fixes,
    driver: {
      ...driver,
      configure(raw) {
        const run = driver.configure(raw);
        return async (host) =>
          run({
            ...host,
            reportLocation(fix) {
              fixes.push(fix);
              host.reportLocation(fix);
            },
          });
      },
    },
  };
}
