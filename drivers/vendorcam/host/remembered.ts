/** State of one host that is kept over restarts. */
import { z } from 'zod';
import { DeviceMemory } from '../../../src/toolkit/device/device-memory.ts';
import { nameRecord } from '../../../src/toolkit/device/device-name.ts';
import { loginRecord } from '../../../src/toolkit/device/login-guard.ts';
import { readSecretFile } from '../../../src/toolkit/device/secret-file.ts';
import type { DriverLog } from '../../../src/toolkit/driver/driver.ts';
import { DeviceRejected } from '../../../src/platform/errors.ts';
import { password_chars_max } from '../options.ts';
import { savedSession } from './session.ts';
import { texts } from '../texts.ts';

export const switch_kinds = ['siren', 'light'] as const;
export type SwitchKind = (typeof switch_kinds)[number];

const hostMemory = z.object({
  /** SHA-256 of the certificate of the first contact. */
  fingerprint: z.string().optional(),
  session: savedSession.optional(),
  ...loginRecord,
  ...nameRecord,
  /** Refusal of the login for events. */
  push_refused: loginRecord.refused,
  /** Channels with a pending Stop. */
  owed_stops: z.array(z.int()).catch([]),
  /** Sirens and lights with a pending Off. */
  owed_offs: z.array(z.templateLiteral([z.enum(switch_kinds), ' ', z.int().min(0).max(255)])).catch([]),
});
export type Memory = DeviceMemory<typeof hostMemory>;

export async function openMemory(path: string, log: DriverLog): Promise<Memory> {
  return DeviceMemory.open(path, hostMemory, log);
}

/** Throws DeviceRejected with the remedy: only a change of the configuration or of the file helps. */
export async function readPassword(file: string): Promise<string> {
  const password = await readSecretFile('password_file', file);
  if (password.length > password_chars_max) {
    throw new DeviceRejected(texts.password_long(file, password_chars_max));
  }
  return password;
}
