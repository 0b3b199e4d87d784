/** Checks the disk of the buffer: free space, inodes, and writing a file. */
import { randomUUID } from 'node:crypto';
import { open, rm, statfs, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../../kit/config/config.ts';
import { nearestExisting } from '../../kit/config/state-place.ts';
import { messageOf, systemReason } from '../../platform/errors.ts';
import { size } from '../terminal/shell.ts';
import { type Finding, fail, ok, warn } from './finding.ts';
import { texts } from './texts.ts';
import { readTextUpTo, small_bytes_max } from '../../platform/bounded-file.ts';

const inodes_few = 1_000;
const probe_bytes = 4_096;

export interface Room {
  /** Least free bytes. */
  readonly bytes_min: number;
  /** Where the limit is set, and what to do before it is reached. */
  readonly low: string;
  readonly soon: string;
}

/** Of the kit's buffer. */
export function bufferRoom({ outbox }: Pick<Config, 'outbox'>): Room {
  return { bytes_min: outbox.free_bytes_min, low: texts.minimum_of_buffer, soon: texts.free_space_soon };
}

export async function checkDisk(state_dir: string, room: Room): Promise<readonly Finding[]> {
  const dir = await nearestExisting(state_dir);
  try {
    const { bavail, bsize, files, ffree } = await statfs(dir);
    return [
      roomFinding(dir, bavail * bsize, room),
      // File systems without an inode table report zero inodes.
      ...(files > 0 && ffree < inodes_few
        ? [warn('inodes', texts.inodes_free(ffree, dir), texts.delete_small_files)]
        : []),
      await writeFinding(dir),
      ...(await checkWear(dir)),
    ];
  } catch (error) {
    return [fail('disk', texts.cannot_read(dir, systemReason(error)), texts.check_disk)];
  }
}

function roomFinding(dir: string, free: number, { bytes_min: wanted, low, soon }: Room): Finding {
  const room = texts.bytes_free(size(free), dir);
  if (free < wanted) {
    // What becomes of messages until then is the daemon's to report: it drops the oldest, or keeps them in memory.
    return fail('disk space', texts.below_minimum(room, size(wanted), low), texts.free_space_logs);
  }
  return free < wanted * 2 ? warn('disk space', room, soon) : ok('disk space', room);
}

/** Writes and syncs a file, which also finds read-only mounts, quotas and defects. */
async function writeFinding(dir: string): Promise<Finding> {
  const file = join(dir, `.doctor-${randomUUID()}`);
  try {
    await using handle = await open(file, 'wx', 0o600);
    await handle.write(Buffer.alloc(probe_bytes));
    await handle.sync();
    return ok('disk write', texts.accepts_files(dir));
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : messageOf(error);
    return code === 'EACCES' || code === 'EPERM'
      ? warn('disk write', texts.cannot_write(dir, systemReason(error)), texts.run_as_daemon_user)
      : fail('disk write', texts.cannot_write(dir, systemReason(error)), writeRemedy(code));
  } finally {
    await rm(file, { force: true }).catch(() => undefined);
  }
}

function writeRemedy(code: string): string {
  if (code === 'ENOSPC' || code === 'EDQUOT') return texts.free_space_full;
  if (code === 'EROFS') return texts.repair_disk;
  return texts.replace_disk;
}

// Checks the wear of the flash under a directory, as eMMC reports it (JEDEC JESD84-B51, EXT_CSD 267 to 269).

/** A step is a tenth of the rated life; step 11 means that it is exceeded. */
const over_step = 11;
const late_step = 9;
/** Spare blocks: 2: most are used, 3: almost all are used. */
const [eol_warning, eol_urgent] = [2, 3];

/** Empty if the disk does not report wear. `sys`: mount point of sysfs. */
export async function checkWear(dir: string, sys = '/sys'): Promise<readonly Finding[]> {
  const device = await deviceOf(dir, sys);
  if (device === undefined) return [];
  const [life, eol] = await Promise.all([
    numbersIn(join(device, 'life_time')),
    numbersIn(join(device, 'pre_eol_info')),
  ]);
  // One value for each of the two memory types of the chip; 0: not reported.
  const step = Math.max(0, ...life);
  const spare = Math.max(0, ...eol);
  if (step === 0 && spare === 0) return [];
  const what = 'disk wear';
  const finding =
    step >= over_step
      ? texts.flash_worn_out(dir)
      : texts.flash_used(dir, step * 10, spare >= eol_warning ? '; few spare blocks are left' : '');
  if (step >= over_step || spare >= eol_urgent) return [fail(what, finding, texts.replace_flash)];
  return step >= late_step || spare >= eol_warning
    ? [warn(what, finding, texts.plan_flash_replacement)]
    : [ok(what, finding)];
}

/** The sysfs directory of the device, for a partition and for a whole disk. */
async function deviceOf(dir: string, sys: string): Promise<string | undefined> {
  const { dev } = await stat(dir, { bigint: true });
  const block = await realpath(join(sys, 'dev/block', `${majorOf(dev)}:${minorOf(dev)}`)).catch(
    () => undefined,
  );
  if (block === undefined) return undefined;
  for (const device of [join(block, 'device'), join(block, '../device')]) {
    if ((await numbersIn(join(device, 'life_time'))).length > 0) return device;
  }
  return undefined;
}

/** As makedev(3) of Linux packs them. */
function majorOf(dev: bigint): bigint {
  return ((dev >> 8n) & 0xfffn) | ((dev >> 32n) & 0xfffff000n);
}

function minorOf(dev: bigint): bigint {
  return (dev & 0xffn) | ((dev >> 12n) & 0xffffff00n);
}

/** `0x01 0x03` */
async function numbersIn(file: string): Promise<readonly number[]> {
  const text = await readTextUpTo(file, small_bytes_max).catch(() => '');
  return (text.match(/0x[0-9a-f]{1,2}\b/giu) ?? []).map(Number);
}
