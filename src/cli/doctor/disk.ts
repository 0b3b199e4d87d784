/** Checks the disk that holds the buffer: room, inodes, and that it takes and keeps a file. */
import { randomUUID } from 'node:crypto';
import { access, open, rm, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Config } from '../../config.ts';
import { messageOf } from '../../errors.ts';
import { size } from '../shell.ts';
import { type Finding, fail, ok, warn } from './finding.ts';
import { checkWear } from './wear.ts';

const inodes_few = 1_000;
const probe_bytes = 4_096;

export async function checkDisk({
  state_dir,
  outbox,
}: Pick<Config, 'state_dir' | 'outbox'>): Promise<readonly Finding[]> {
  const dir = await nearestThere(state_dir);
  try {
    const { bavail, bsize, files, ffree } = await statfs(dir);
    return [
      roomFinding(dir, bavail * bsize, outbox.free_bytes_min),
      // File systems without a table of inodes say that they have none at all.
      ...(files > 0 && ffree < inodes_few
        ? [warn('inodes', `${ffree} are free on the disk of ${dir}`, 'delete files, many small ones first')]
        : []),
      await writeFinding(dir),
      ...(await checkWear(dir)),
    ];
  } catch (error) {
    return [fail('disk', `${dir}: ${messageOf(error)}`, 'check the disk and its mount')];
  }
}

function roomFinding(dir: string, free: number, wanted: number): Finding {
  const room = `${size(free)} free on the disk of ${dir}`;
  if (free < wanted) {
    return fail(
      'disk space',
      `${room}, less than the ${size(wanted)} that must stay free (outbox.free_disk_min_mb)`,
      'free some space: old logs first (journalctl --vacuum-size=100M); messages are thinned and dropped meanwhile',
    );
  }
  return free < wanted * 2
    ? warn('disk space', room, 'free some space before the buffer has to drop messages')
    : ok('disk space', room);
}

/** What a write and its fsync tell that no permission shows: read-only mounts, quotas, defects. */
async function writeFinding(dir: string): Promise<Finding> {
  const file = join(dir, `.doctor-${randomUUID()}`);
  try {
    await using handle = await open(file, 'wx', 0o600);
    await handle.write(Buffer.alloc(probe_bytes));
    await handle.sync();
    return ok('disk write', `${dir} takes files`);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : messageOf(error);
    return code === 'EACCES' || code === 'EPERM'
      ? warn(
          'disk write',
          `this user may not write to ${dir}`,
          'run the doctor as root or as the user of the daemon',
        )
      : fail('disk write', `${dir} takes no file (${code})`, writeRemedy(code));
  } finally {
    await rm(file, { force: true }).catch(() => undefined);
  }
}

function writeRemedy(code: string): string {
  if (code === 'ENOSPC' || code === 'EDQUOT') return 'the disk is full: free some space';
  if (code === 'EROFS')
    return 'the disk is read-only, often after a defect: see dmesg, check it (fsck), then restart the kit';
  return 'the disk fails: see dmesg, and replace it';
}

/** The directory, or the closest one above it that is there: the daemon makes the rest. */
export async function nearestThere(dir: string): Promise<string> {
  return access(dir).then(
    () => dir,
    async () => (dir === dirname(dir) ? dir : nearestThere(dirname(dir))),
  );
}
