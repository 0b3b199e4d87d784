/** Shared by the simulated devices of the demo: finding their entries in the configuration, and the error of a failed start. */
import { writeFile } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { Config } from '../../config/config.ts';
import { messageOf } from '../../errors.ts';
import { texts } from '../texts.ts';
import { loopback } from './embedded-broker.ts';
import { readTextUpTo, small_bytes_max } from '../../platform/bounded-file.ts';

const entry = z.looseObject({
  name: z.string(),
  host: z.string(),
  port: z.int(),
  push_port: z.int().optional(),
  password_file: z.string(),
});
export type DemoEntry = z.output<typeof entry>;

/** The entry of a simulated device, identified by its name and the loopback address. */
export function demoEntry(
  { drivers }: Config,
  driver_name: string,
  list: string,
  name: string,
): DemoEntry | undefined {
  const options = drivers.find(({ driver }) => driver.name === driver_name)?.options;
  const entries = z.looseObject({ [list]: z.array(z.unknown()) }).safeParse(options).data?.[list] ?? [];
  return entries
    .flatMap((each) => entry.safeParse(each).data ?? [])
    .find((each) => each.name === name && each.host === loopback);
}

/** Writes a file with a random password. */
export async function writePassword(file: string): Promise<void> {
  await writeFile(file, randomBytes(12).toString('hex'), { mode: 0o600 });
}

export async function passwordIn(file: string): Promise<string> {
  return (await readTextUpTo(file, small_bytes_max)).trim();
}

/** Starts a device. Returns an error sentence on failure. */
export async function tried(name: string, start: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await start();
    return undefined;
  } catch (error) {
    return texts.simulator_failed(name, messageOf(error));
  }
}
