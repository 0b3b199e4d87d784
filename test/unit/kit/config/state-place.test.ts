/** What is said of a directory for state that loses what is kept in it, or shows it. */
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { placeWarnings } from '../../../../src/kit/config/state-place.ts';
import { texts } from '../../../../src/kit/config/texts.ts';
import { rootMissing } from '../../../support/peers.ts';
import { run } from '../../../support/temporary.ts';
import { testDirectory } from '../../../support/test-directory.ts';
import { readText } from './lab.ts';

const memory = (kind: string) => (dir: string) => [texts.state_in_memory('state_dir', dir, kind)];
const open = (type: string) => (dir: string) => [texts.state_open('state_dir', dir, type)];
const remote = (type: string) => (dir: string) => [texts.state_remote('state_dir', dir, type)];

it.each([
  ['a disk', ['ROOT - ext4 /dev/mmcblk0p2 rw'], () => []],
  // balena-os/meta-balena#406: /var/lib in memory; openwrt/packages#9342: /var leads to /tmp
  ['a tmpfs', ['ROOT - ext4 /dev/sda1 rw', 'DIR - tmpfs tmpfs rw,size=65536k'], memory('tmpfs')],
  ['a later mount over a tmpfs', ['DIR - tmpfs tmpfs rw', 'DIR - ext4 /dev/sda1 rw'], () => []],
  [
    'a tmpfs with a blank in its name',
    [`/mnt/no\\040disk - tmpfs tmpfs rw`, 'ROOT - ext4 /dev/sda1 rw'],
    () => [],
  ],
  ['log2ram with zram', ['DIR - ext4 /dev/zram1 rw'], memory('/dev/zram1')],
  [
    'a live system',
    [
      '/run/live - tmpfs tmpfs rw',
      'ROOT - overlay overlay rw,lowerdir=/r,upperdir=/run/live/rw,workdir=/run/live/w',
    ],
    memory('overlay over tmpfs'),
  ],
  // openwrt/chaos_calmer#24: one boot with the flash, one without
  [
    'OpenWrt on its flash',
    ['/overlay - jffs2 /dev/mtdblock5 rw', 'ROOT - overlay overlayfs:/overlay rw,upperdir=/overlay/upper'],
    () => [],
  ],
  [
    'OpenWrt without its flash',
    ['/mnt/ram - tmpfs tmpfs rw', 'ROOT - overlay overlayfs:/tmp/root rw,upperdir=/mnt/ram/root/upper'],
    memory('overlay over tmpfs'),
  ],
  ['a container', ['ROOT - overlay overlay rw,upperdir=/var/lib/docker/overlay2/1/diff'], () => []],
  // lrnselfreliance/wrolpi#568
  ['exFAT by FUSE', ['DIR - fuseblk /dev/sda1 rw,user_id=0,default_permissions'], open('fuseblk')],
  ['FAT', ['DIR - vfat /dev/mmcblk0p1 rw,fmask=0022,dmask=0022'], open('vfat')],
  ['NFS', ['DIR - nfs4 nas:/kits rw'], remote('nfs4')],
] as const)('of %s', async (_name, mounts, expected) => {
  const dir = await testDirectory();
  const file = join(dir, 'mountinfo');
  const lines = mounts.map(
    (line, n) => `${n + 30} 1 0:${n} / ${line.replace(/^ROOT/u, '/').replace(/^DIR/u, dir)}`,
  );
  await writeFile(file, lines.map((line) => line.replace(' - ', ' rw shared:1 - ')).join('\n'));
  const state = join(dir, 'to be made', 'state');
  expect(await placeWarnings('state_dir', state, file)).toEqual(expected(state));
});

it('does not call files open below a directory that only the daemon may enter', async () => {
  const dir = await testDirectory();
  await writeFile(join(dir, 'mountinfo'), `30 1 0:1 / ${dir} rw - vfat /dev/sda1 rw`);
  const closed = join(dir, 'closed');
  await mkdir(closed);
  await chmod(closed, 0o750);
  expect(await placeWarnings('state_dir', join(closed, 'state'), join(dir, 'mountinfo'))).toEqual([]);
});

it.skipIf(rootMissing())('warns of a tmpfs of this machine, in the configuration of a kit', async () => {
  const dir = await testDirectory();
  await run('mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', dir);
  try {
    const { warnings } = await readText(dir, `state_dir: ${join(dir, 'state')}\n`);
    expect(warnings).toContain(texts.state_in_memory('state_dir', join(dir, 'state'), 'tmpfs'));
  } finally {
    await run('umount', dir);
  }
});
