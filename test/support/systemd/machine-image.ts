/** The disk, the kernel and the first root of an emulated machine on which the package is installed. */
import { existsSync } from 'node:fs';
import { chmod, copyFile, cp, mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { cache_dir, installInto, rootFileSystem } from './container.ts';
import { fetchKernel, type MachineKind } from './machine-kind.ts';
import { program } from '../peers.ts';
import { run } from '../temporary.ts';

const packages = [
  'systemd',
  'systemd-sysv',
  'dbus',
  'udev',
  'kmod',
  'iproute2',
  'procps',
  'init-system-helpers',
  'dmsetup',
  'e2fsprogs',
];

/** Of the thousands that the kernel has, those that make devices and faults here; what they need comes with them. */
const wanted_modules = [
  'virtio_pci',
  'virtio_blk',
  'ext4',
  'crc32c_generic',
  'dummy_hcd',
  'g_serial',
  'usb_f_acm',
  'usb_f_serial',
  'cdc-acm',
  'sch_netem',
  'veth',
  'loop',
  'dm-flakey',
  'autofs4',
];
/** Loaded before there is a root, in this order. */
const root_modules = ['virtio_pci', 'virtio_blk', 'crc32c_generic', 'ext4'];
const root_programs = ['sh', 'mount', 'modprobe', 'switch_root'];

/** Nothing of these is wanted on a machine without network and people. */
const masked_units = ['getty@tty1.service', 'getty-static.service', 'e2scrub_reap.service'];
const disk_size = '1200M';
/** For one script inside. To unpack the package takes minutes there, and many more where other programs want the processor. */
export const script_s = 1_800;

export interface Image {
  readonly kernel: string;
  readonly first_root: string;
  readonly disk: string;
}

/** Fills `dir` with an image on which the packages `debs` are installed and started at boot. Needs root. */
export async function makeImage(dir: string, debs: readonly string[], kind: MachineKind): Promise<Image> {
  const all_packages = [...packages, ...kind.packages];
  const base = await rootFileSystem(all_packages, kind.isForeign ? kind.architecture : undefined);
  const kernel = await unpackedKernel(kind);
  const root = join(dir, 'root');
  await run('cp', '--archive', base, root);
  try {
    await addModules(kernel, root);
    await installInto(root, debs);
    await addAgent(root, kind);
    if (kind.isForeign) await makePatient(root);
    const disk = join(dir, 'disk.ext4');
    await run('mke2fs', '-q', '-t', 'ext4', '-d', root, disk, disk_size);
    const first_root = await makeFirstRoot(dir, root, kernel.version);
    const image = join(kernel.dir, 'boot', `vmlinuz-${kernel.version}`);
    return { kernel: image, first_root, disk };
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

interface Kernel {
  readonly dir: string;
  readonly version: string;
}

/** The kernel of the distribution, fetched once. */
async function unpackedKernel(kind: MachineKind): Promise<Kernel> {
  const dir = join(cache_dir, `kernel-${kind.architecture}`);
  if (!existsSync(dir)) {
    const unfinished = `${dir}.${process.pid}`;
    await mkdir(unfinished, { recursive: true });
    try {
      const deb = await fetchKernel(kind, unfinished);
      await run('dpkg-deb', '--extract', deb, unfinished);
      await rm(deb);
      const [version = ''] = await readdir(join(unfinished, 'lib/modules'));
      await run('depmod', '--basedir', unfinished, version);
      await rename(unfinished, dir);
    } finally {
      await rm(unfinished, { recursive: true, force: true });
    }
  }
  const [version = ''] = await readdir(join(dir, 'lib/modules'));
  return { dir, version };
}

async function addModules({ dir, version }: Kernel, root: string): Promise<void> {
  const files = new Set<string>();
  for (const name of wanted_modules) {
    const depends = await run('modprobe', '-d', dir, '-S', version, '--show-depends', name);
    for (const [, file = ''] of depends.matchAll(/^insmod (\S+)/gm)) files.add(file);
  }
  // In Debian 12 /lib is a link to /usr/lib.
  const modules = join(root, 'usr/lib/modules', version);
  await mkdir(modules, { recursive: true });
  for (const file of files) {
    const place = join(modules, file.split(`/modules/${version}/`)[1] ?? basename(file));
    await mkdir(dirname(place), { recursive: true });
    await copyFile(file, place);
  }
  for (const list of ['modules.order', 'modules.builtin', 'modules.builtin.modinfo']) {
    await cp(join(dir, 'lib/modules', version, list), join(modules, list));
  }
  await run('depmod', '--basedir', root, version);
}

const agent_unit = `[Unit]
Description=Runs what the test sends over its own serial port
StartLimitIntervalSec=0
[Service]
ExecStart=/usr/local/sbin/test-agent
Restart=always
RestartSec=1
[Install]
WantedBy=multi-user.target
`;

/** One request is a line, a script in base64; the answer is a line too, its exit code and what it printed. */
const agentOn = (port: string): string => `#!/bin/bash
exec <${port} >${port} 2>/dev/null
stty raw -echo
echo ready
while read -r request; do
  echo "$request" | base64 -d >/run/test-agent.sh
  timeout ${script_s} sh /run/test-agent.sh >/run/test-agent.out 2>&1 </dev/null
  code=$?
  echo "$code $(base64 -w0 /run/test-agent.out)"
done
`;

/** A processor that is emulated by another one takes minutes for what takes a gateway seconds. */
const patient_unit = `[Service]
TimeoutStartSec=900
TimeoutStopSec=300
WatchdogSec=600
`;

async function makePatient(root: string): Promise<void> {
  const dir = join(root, 'etc/systemd/system/kit-connector.service.d');
  await mkdir(dir, { recursive: true });
  await writeFile(join(dir, 'patient.conf'), patient_unit);
}

async function addAgent(root: string, { agent_port, console }: MachineKind): Promise<void> {
  const program_file = join(root, 'usr/local/sbin/test-agent');
  await writeFile(program_file, agentOn(agent_port));
  await chmod(program_file, 0o755);
  const units = join(root, 'etc/systemd/system');
  await writeFile(join(units, 'test-agent.service'), agent_unit);
  await symlink('../test-agent.service', join(units, 'multi-user.target.wants/test-agent.service'));
  for (const unit of [...masked_units, `serial-getty@${console}.service`]) {
    await rm(join(units, unit), { force: true });
    await symlink('/dev/null', join(units, unit));
  }
}

const first_program = `#!/bin/sh
export PATH=/usr/bin:/usr/sbin
mount -t devtmpfs dev /dev
for module in ${root_modules.join(' ')}; do modprobe $module; done
mount -t ext4 /dev/vda /root
exec switch_root /root /lib/systemd/systemd systemd.show_status=false
`;

/** A root in memory with just enough to find the disk. */
async function makeFirstRoot(dir: string, root: string, version: string): Promise<string> {
  const small = join(dir, 'first-root');
  const modules = join('usr/lib/modules', version);
  for (const each of ['dev', 'root', 'usr/bin', 'usr/lib', 'usr/lib64', 'etc'])
    await mkdir(join(small, each), { recursive: true });
  for (const [link, target] of [
    ['bin', 'usr/bin'],
    ['sbin', 'usr/bin'],
    ['lib', 'usr/lib'],
    ['lib64', 'usr/lib64'],
  ])
    await symlink(target ?? '', join(small, link ?? ''));
  await cp(join(root, modules), join(small, modules), { recursive: true });
  const libraries = new Set<string>();
  for (const name of root_programs) {
    const listed = (
      await run(
        'chroot',
        root,
        '/usr/bin/sh',
        '-c',
        `readlink -f $(command -v ${name}); ldd $(command -v ${name})`,
      )
    ).split('\n');
    await copyFile(join(root, listed[0] ?? ''), join(small, 'usr/bin', name));
    for (const line of listed.slice(1)) {
      const file = /(\/\S+) \(0x/.exec(line)?.[1];
      if (file !== undefined) libraries.add(file);
    }
  }
  for (const file of libraries) {
    await mkdir(dirname(join(small, file)), { recursive: true });
    await copyFile(
      join(root, (await run('chroot', root, '/usr/bin/readlink', '-f', file)).trim()),
      join(small, file),
    );
  }
  await writeFile(join(small, 'init'), first_program);
  await chmod(join(small, 'init'), 0o755);
  const archive = join(dir, 'first-root.cpio');
  await run('sh', '-c', `cd '${small}' && find . | ${program('cpio')} --quiet -o -H newc >'${archive}'`);
  return archive;
}
