/** State of one radio that is kept over restarts. */
import { z } from 'zod';
import { DeviceMemory } from '../../src/toolkit/device/device-memory.ts';
import { nameRecord } from '../../src/toolkit/device/device-name.ts';
import { loginRecord } from '../../src/toolkit/device/login-guard.ts';
import type { DriverLog } from '../../src/toolkit/driver/driver.ts';

const radioMemory = z.object({
  /** SHA-256 of the certificate of the first contact. */
  fingerprint: z.string().optional(),
  /** MAC address of the radio that answered last, so that its peers find it before it answers again. */
  mac: z.string().optional(),
  ...loginRecord,
  ...nameRecord,
});
export type Memory = DeviceMemory<typeof radioMemory>;

export async function openMemory(path: string, log: DriverLog): Promise<Memory> {
  return DeviceMemory.open(path, radioMemory, log);
}
