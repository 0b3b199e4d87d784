/**
 * Small disks of one's own, to be filled, broken and cut off. They need root and loop devices; `diskMissing` says whether
 * a test has to be skipped for want of them.
 */
import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { peerMissing, program, rootMissing } from '../peers.ts';

/** For `describe.skipIf`: prints why, and is false where peers are required. */
export function diskMissing(): boolean {
  return rootMissing() || peerMissing('mount', 'umount', 'losetup', 'mkfs.ext4', 'perl');
}

export interface Ext4 {
  /** What a power cut does: nothing that was not synced is ever written. The disk is dead until `remount`. */
  shutdown(): void;
  /** What a defect does: the kernel finds the file system broken and makes it read-only until `remount`. */
  breakDown(): void;
  /** Unmounts it, also while files of it are open: the folder below is empty. */
  takeAway(): void;
  /** Unmounts and mounts again. Every file of the disk must be closed. */
  remount(): void;
}

/** Runs `fn` with an ext4 file system of its own, mounted at `dir`. */
export async function withExt4<T>(
  size_mb: number,
  fn: (dir: string, disk: Ext4) => Promise<T> | T,
): Promise<T> {
  const home = mkdtempSync(join(tmpdir(), 'kit-connector-disk-'));
  const [image, dir] = [join(home, 'image'), join(home, 'mounted')];
  run('mkdir', dir);
  run('truncate', '-s', `${size_mb}M`, image);
  run('mkfs.ext4', '-q', '-F', image);
  const device = run('losetup', '--find', '--show', image).trim();
  // `ip netns exec` of a test beside this one copies every mount: in a shared folder its copy goes when ours does.
  run('mount', '--bind', home, home);
  run('mount', '--make-shared', home);
  const mount = (): string => run('mount', '-o', 'errors=remount-ro', device, dir);
  const disk: Ext4 = {
    shutdown: () => shutDown(dir),
    breakDown: () => writeFileSync(`/sys/fs/ext4/${basename(device)}/trigger_fs_error`, 'broken for a test'),
    takeAway: () => unmount(dir),
    remount: () => {
      run('umount', dir);
      mount();
      if (run('findmnt', '-no', 'OPTIONS', dir).split(',').includes('shutdown'))
        throw new Error(`${device} is still mounted in another mount namespace, so the cut did not end`);
    },
  };
  try {
    mount();
    return await fn(dir, disk);
  } finally {
    unmount(dir);
    unmount(home);
    run('losetup', '--detach', device);
    rmSync(home, { recursive: true, force: true });
  }
}

/** Runs `fn` with a file system in memory, mounted at `dir`. */
export async function withTmpfs<T>(size_mb: number, fn: (dir: string) => Promise<T> | T): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), 'kit-connector-disk-'));
  try {
    run('mount', '-t', 'tmpfs', '-o', `size=${size_mb}m`, 'tmpfs', dir);
    return await fn(dir);
  } finally {
    unmount(dir);
    rmSync(dir, { recursive: true, force: true });
  }
}

/** EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH: not even the journal is written any more. */
function shutDown(dir: string): void {
  const script =
    'open(my $dir, "<", $ARGV[0]) or die $!; my $flag = pack("I", 2); ioctl($dir, 0x8004587D, $flag) or die $!';
  run('perl', '-e', script, dir);
}

/** Somebody else writes until nothing is free. Returns the file that takes the space. */
export function fillUp(dir: string): string {
  const hog = join(dir, 'hog');
  const fd = openSync(hog, 'w');
  for (const size of [1024 ** 2, 4096, 1]) {
    const block = Buffer.alloc(size);
    try {
      for (;;) writeSync(fd, block);
    } catch {
      // Full for blocks of this size.
    }
  }
  closeSync(fd);
  return hog;
}

/** Lazily: a test that failed may have left a file open. */
function unmount(dir: string): void {
  try {
    run('umount', '--lazy', dir);
  } catch {
    // It was not mounted.
  }
}

function run(name: string, ...args: readonly string[]): string {
  return execFileSync(program(name), args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}
