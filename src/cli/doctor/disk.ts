/** Checks the disk of the buffer: free space, inodes, and writing a file. */
import { randomUUID } from 'node:crypto';
import { access, open, rm, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Config } from '../../config/config.ts';
import { messageOf, systemReason } from '../../errors.ts';
import { size } from '../terminal/shell.ts';
import { type Finding, fail, ok, warn } from './finding.ts';
import { checkWear } from './wear.ts';

const inodes_few = 1_000;
const probe_bytes = 4_096;

export async function checkDisk({
  state_dir,
  outbox,
}: Pick<Config, 'state_dir' | 'outbox'>): Promise<readonly Finding[]> {
  const dir = await nearestExisting(state_dir);
  try {
    const { bavail, bsize, files, ffree } = await statfs(dir);
    return [
      roomFinding(dir, bavail * bsize, outbox.free_bytes_min),
      // File systems without an inode table report zero inodes.
      ...(files > 0 && ffree < inodes_few
        ? [
            warn(
              'inodes',
              `${ffree} free on the disk of ${dir}`,
              'delete files; directories of many small files first',
            ),
          ]
        : []),
      await writeFinding(dir),
      ...(await checkWear(dir)),
    ];
  } catch (error) {
    return [fail('disk', `cannot read ${dir} (${systemReason(error)})`, 'check the disk and its mount')];
  }
}

function roomFinding(dir: string, free: number, wanted: number): Finding {
  const room = `${size(free)} free on the disk of ${dir}`;
  if (free < wanted) {
    return fail(
      'disk space',
      `${room}, less than the minimum of ${size(wanted)} (outbox.free_disk_min_mb)`,
      'free some space, old logs first (journalctl --vacuum-size=100M); until then the oldest messages of the lowest priority are dropped',
    );
  }
  return free < wanted * 2
    ? warn('disk space', room, 'free some space before the buffer has to drop messages')
    : ok('disk space', room);
}

/** Writes and syncs a file, which also finds read-only mounts, quotas and defects. */
async function writeFinding(dir: string): Promise<Finding> {
  const file = join(dir, `.doctor-${randomUUID()}`);
  try {
    await using handle = await open(file, 'wx', 0o600);
    await handle.write(Buffer.alloc(probe_bytes));
    await handle.sync();
    return ok('disk write', `${dir} accepts files`);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : messageOf(error);
    return code === 'EACCES' || code === 'EPERM'
      ? warn(
          'disk write',
          `cannot write to ${dir} (${systemReason(error)})`,
          'run the doctor as root or as the user of the daemon',
        )
      : fail('disk write', `cannot write to ${dir} (${systemReason(error)})`, writeRemedy(code));
  } finally {
    await rm(file, { force: true }).catch(() => undefined);
  }
}

function writeRemedy(code: string): string {
  if (code === 'ENOSPC' || code === 'EDQUOT') return 'free some space; the disk is full';
  if (code === 'EROFS')
    return 'see dmesg, check the disk (fsck) and restart the kit; a disk often becomes read-only after a defect';
  return 'see dmesg, and replace the disk';
}

/** The directory, or its closest existing parent: the daemon creates the rest. */
export async function nearestExisting(dir: string): Promise<string> {
  return access(dir).then(
    () => dir,
    async () => (dir === dirname(dir) ? dir : nearestExisting(dirname(dir))),
  );
}
