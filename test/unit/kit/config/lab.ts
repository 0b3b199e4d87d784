/** A configuration file in a directory of its own, and two drivers that check their options. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { onvif } from '../../../../drivers/onvif/onvif.ts';
import { type Config, readConfig } from '../../../../src/kit/config/config.ts';
import type { DriverList } from '../../../../src/kit/config/drivers.ts';
import { defineDriver } from '../../../../src/toolkit/driver/driver.ts';
import { ConfigInvalid } from '../../../../src/platform/errors.ts';
import { withDirectory } from '../../../support/temporary.ts';

export const kit_id = '3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10';

const options = z.strictObject({
  interval_s: z.number().min(1).default(5),
  port: z.int().min(1).max(65_535).optional(),
  wans: z.array(z.strictObject({ name: z.string(), type: z.enum(['satellite', 'cellular']) })).default([]),
});
export const probe = defineDriver({ name: 'probe', feeds: {}, options, run: async () => undefined });

const drivers: DriverList = [
  { name: 'probe', load: async () => probe },
  {
    name: 'broken',
    load: async () => {
      throw new Error('Cannot find package "serialport"');
    },
  },
  { name: 'onvif', load: async () => onvif },
];

/** Reads `text` as the file `config.yaml` of `dir`. */
export async function readText(dir: string, text: string, credentials_dir?: string): Promise<Config> {
  const file = join(dir, 'config.yaml');
  await writeFile(file, text);
  return readConfig(file, { drivers, credentials_dir });
}

/** The faults of `work`, the directory left out of the sentences. */
export async function faultsOf(dir: string, work: Promise<unknown>): Promise<readonly string[]> {
  try {
    await work;
  } catch (error) {
    if (error instanceof ConfigInvalid) return error.faults.map((fault) => fault.replaceAll(`${dir}/`, ''));
    throw error;
  }
  return [];
}

export async function faultsOfText(text: string): Promise<readonly string[]> {
  return withDirectory(async (dir) => faultsOf(dir, readText(dir, text)));
}
