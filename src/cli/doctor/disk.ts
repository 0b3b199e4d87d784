/** Checks the disk of the buffer: free space, inodes, and writing a file. */
import { randomUUID } from 'node:crypto';
import { access, open, rm, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Config } from '../../config/config.ts';
import { messageOf, systemReason } from '../../errors.ts';
import { size } from '../terminal/shell.ts';
import { type Finding, fail, ok, warn } from './finding.ts';
import { texts } from './texts.ts';
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
        ? [warn('inodes', texts.inodes_free(ffree, dir), texts.delete_small_files)]
        : []),
      await writeFinding(dir),
      ...(await checkWear(dir)),
    ];
  } catch (error) {
    return [fail('disk', texts.cannot_read(dir, systemReason(error)), texts.check_disk)];
  }
}

function roomFinding(dir: string, free: number, wanted: number): Finding {
  const room = texts.bytes_free(size(free), dir);
  if (free < wanted) {
    // What becomes of messages until then is the daemon's to report: it drops the oldest, or keeps them in memory.
    return fail('disk space', texts.below_minimum(room, size(wanted)), texts.free_space_logs);
  }
  return free < wanted * 2 ? warn('disk space', room, texts.free_space_soon) : ok('disk space', room);
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

/** The directory, or its closest existing parent: the daemon creates the rest. */
export async function nearestExisting(dir: string): Promise<string> {
  return access(dir).then(
    () => dir,
    async () => (dir === dirname(dir) ? dir : nearestExisting(dirname(dir))),
  );
}
