/** The availability window on disk: one small JSON file, replaced whole, so that a power cut leaves the old one or the new one. */
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { minute_ms, window_minutes } from './day-window.ts';
import { hasCode } from '../../../src/errors.ts';
import { readTextUpToSync, table_bytes_max } from '../../../src/platform/bounded-file.ts';

const duration_ms = z.int().min(0).max(minute_ms);
const run = z.tuple([z.int().min(1).max(window_minutes), duration_ms, duration_ms]);

/** Links of one kit that are remembered. */
export const links_max = 64;

/** Boots that are kept: this one, and boots without a known time before the clock is set. */
export const boots_max = 4;

const bootRecord = z.strictObject({
  boot_id: z.string(),
  /** Minute since that boot which the last minute of every link is. */
  minute: z.int(),
  /** Time of day at that minute; null: the clock was not set. */
  wall_ms: z.number().nullable(),
  links: z.array(z.strictObject({ name: z.string(), runs: z.array(run).max(window_minutes) })).max(links_max),
});
export type BootRecord = z.output<typeof bootRecord>;

const availabilityRecord = z.strictObject({
  format: z.literal(1),
  boots: z.array(bootRecord).max(boots_max),
});

/** Empty when there is no file yet. Throws when it cannot be read or is not what was written. */
export function readRecord(file: string): readonly BootRecord[] {
  let text: string;
  try {
    text = readTextUpToSync(file, table_bytes_max);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return [];
    throw error;
  }
  return availabilityRecord.parse(JSON.parse(text)).boots;
}

const owner_only = 0o600;

/** Waits for the disk without holding up the event loop. Puts nothing in place that is outdated when the disk is ready. */
export async function writeRecord(
  file: string,
  boots: readonly BootRecord[],
  isOutdated: () => boolean,
): Promise<void> {
  makeFolder(file);
  const fresh = `${file}.new`;
  const handle = await open(fresh, 'w', owner_only);
  try {
    await handle.writeFile(JSON.stringify({ format: 1, boots }));
    await handle.sync();
  } finally {
    await handle.close();
  }
  if (!isOutdated()) renameSync(fresh, file);
}

/** For the end of the daemon, when nothing else runs any more. */
export function writeRecordNow(file: string, boots: readonly BootRecord[]): void {
  makeFolder(file);
  const fresh = `${file}.last`;
  const fd = openSync(fresh, 'w', owner_only);
  try {
    writeSync(fd, JSON.stringify({ format: 1, boots }));
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(fresh, file);
}

/** It may have been deleted since the start. */
function makeFolder(file: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
}
