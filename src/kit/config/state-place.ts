/** Warns of a directory for state whose file system forgets it, or shows it to every user of the machine. */
import { access, realpath, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { readTextUpTo, table_bytes_max } from '../../platform/bounded-file.ts';
import { texts } from './texts.ts';

/** A line of /proc/self/mountinfo, see proc_pid_mountinfo(5). */
interface Mount {
  readonly point: string;
  readonly type: string;
  readonly source: string;
  readonly upper_dir: string | undefined;
}

const in_memory = new Set(['tmpfs', 'ramfs', 'rootfs']);
/** Disks of memory, as log2ram and armbian-ramlog make them. */
const memory_disk = /^\/dev\/z?ram\d+$/u;
const layered = new Set(['overlay', 'overlayfs']);
/** Their files have the owner and mode that the mount gave them; `fuseblk` is exFAT or NTFS. */
const without_permissions = new Set([
  'vfat',
  'msdos',
  'exfat',
  'ntfs',
  'ntfs3',
  'fuseblk',
  'hfsplus',
  'cifs',
  'smb3',
  '9p',
  'vboxsf',
  'fuse.vmhgfs-fuse',
]);
/** SQLite keeps the index of its log in shared memory, which such a file system has not: sqlite.org/wal.html. */
const remote = new Set(['nfs', 'nfs4', 'cifs', 'smb3', 'ceph', 'fuse.sshfs', 'fuse.glusterfs']);
const search = 0o001;

/** Of what will be in `dir`, whose name in the configuration is `key`. `mounts`: the table of another machine. */
export async function placeWarnings(
  key: string,
  dir: string,
  mounts = '/proc/self/mountinfo',
): Promise<readonly string[]> {
  const table = readMounts(await readTextUpTo(mounts, table_bytes_max).catch(() => ''));
  const place = await realpath(await nearestExisting(dir)).catch(() => dir);
  const mount = mountOf(place, table);
  if (mount === undefined) return [];
  const { type } = mount;
  const memory = memoryBelow(mount, table);
  const isOpen = without_permissions.has(type) && (await isReachable(place));
  return [
    ...(memory === undefined ? [] : [texts.state_in_memory(key, dir, memory)]),
    ...(remote.has(type) ? [texts.state_remote(key, dir, type)] : []),
    ...(isOpen ? [texts.state_open(key, dir, type)] : []),
  ];
}

/** The directory, or its closest existing parent: the daemon creates the rest. */
export async function nearestExisting(dir: string): Promise<string> {
  return access(dir).then(
    () => dir,
    async () => (dir === dirname(dir) ? dir : nearestExisting(dirname(dir))),
  );
}

function readMounts(text: string): readonly Mount[] {
  return text.split('\n').flatMap((line) => {
    const [left = '', right = ''] = line.split(' - ');
    const point = left.split(' ')[4];
    const [type, source, options = ''] = right.split(' ');
    if (point === undefined || type === undefined || source === undefined) return [];
    const upper = options.split(',').find((option) => option.startsWith('upperdir='));
    return [
      { point: plain(point), type, source, upper_dir: upper && plain(upper.slice('upperdir='.length)) },
    ];
  });
}

/** Without the escapes of blanks and backslashes. */
function plain(text: string): string {
  return text.replaceAll(/\\(\d{3})/gu, (_all, octal: string) =>
    String.fromCodePoint(Number.parseInt(octal, 8)),
  );
}

/** Of two mounts at one point the later one covers the other. */
function mountOf(place: string, table: readonly Mount[]): Mount | undefined {
  return table
    .filter(({ point }) => join(place, '/').startsWith(join(point, '/')))
    .reduce<Mount | undefined>(
      (best, each) => (best && best.point.length > each.point.length ? best : each),
      undefined,
    );
}

/** What kind of memory holds the files; undefined: none, or it cannot be seen from here, as the disk below a container. */
function memoryBelow({ type, source, upper_dir }: Mount, table: readonly Mount[]): string | undefined {
  if (in_memory.has(type)) return type;
  if (memory_disk.test(source)) return source;
  if (!layered.has(type) || upper_dir === undefined) return undefined;
  const upper = mountOf(upper_dir, table);
  if (upper === undefined || layered.has(upper.type)) return undefined;
  const memory = memoryBelow(upper, table);
  return memory && `${type} over ${memory}`;
}

/** Whether every user may enter the directory. */
async function isReachable(place: string): Promise<boolean> {
  const { mode } = await stat(place).catch(() => ({ mode: 0 }));
  if ((mode & search) === 0) return false;
  return place === dirname(place) || isReachable(dirname(place));
}
