/** A disk of its own, whose device counts what reaches it: file system and journal included. */
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { withExt4 } from '../../support/disk/disks.ts';
import { run } from '../../support/temporary.ts';

const disk_mb = 256;
const sector_bytes = 512;

/** `writtenBytes`: since the disk exists, with everything that was still in memory. */
export async function withMeteredDisk<T>(
  fn: (dir: string, writtenBytes: () => Promise<number>) => Promise<T>,
): Promise<T> {
  return withExt4(disk_mb, async (dir) => {
    // mkfs leaves the inode tables to be zeroed in the background, which would be counted too.
    await run('mount', '-o', 'remount,noinit_itable', dir);
    const device = basename((await run('findmnt', '-n', '-o', 'SOURCE', dir)).trim());
    return fn(dir, async () => {
      await run('sync', '-f', dir);
      const stat = (await readFile(`/sys/block/${device}/stat`, 'utf8')).trim().split(/\s+/);
      return Number(stat[6]) * sector_bytes;
    });
  });
}
