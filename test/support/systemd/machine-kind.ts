/** What the emulated machines are made of: an amd64 one like most servers, and an arm64 one like most gateways. */
import { mkdir, readdir, rm } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { execFile } from 'node:child_process';
import { arch } from 'node:process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { peerMissing, program, rootMissing } from '../peers.ts';
import { run } from '../temporary.ts';

const execute = promisify(execFile);

export interface MachineKind {
  /** Debian's name. */
  readonly architecture: 'amd64' | 'arm64';
  readonly emulator: string;
  readonly hardware: readonly string[];
  readonly console: string;
  /** How the test's own serial port is plugged in, and its name inside. */
  readonly agent_args: readonly string[];
  readonly agent_port: string;
  /** The file system is made on another machine, whose kernel has to run its programs. */
  readonly isForeign: boolean;
  /** Debian packages beside those that every machine has. */
  readonly packages: readonly string[];
}

/** Two emulated processors and nothing that a network could be reached by. */
const common = '-accel tcg,thread=multi -smp 2 -m 1536 -nographic -no-reboot -nic none -monitor none'.split(
  ' ',
);

export const amd64: MachineKind = {
  architecture: 'amd64',
  emulator: 'qemu-system-x86_64',
  hardware: [...common, '-cpu', 'max'],
  console: 'ttyS0',
  agent_args: ['-serial', 'chardev:agent'],
  agent_port: '/dev/ttyS1',
  isForeign: false,
  packages: [],
};

export const arm64: MachineKind = {
  architecture: 'arm64',
  emulator: 'qemu-system-aarch64',
  // "max" would sign pointers, which emulation does slowly and these gateways do not.
  hardware: [...common, '-machine', 'virt', '-cpu', 'cortex-a72'],
  console: 'ttyAMA0',
  agent_args: ['-device', 'pci-serial,chardev=agent'],
  agent_port: '/dev/ttyS0',
  isForeign: true,
  // No network leads out of it: its broker is inside.
  packages: ['mosquitto', 'mosquitto-clients'],
};

/** For `describe.skipIf`, with a printed reason. */
export function machineMissing({ emulator, isForeign }: MachineKind): boolean {
  const tools = [emulator, 'mmdebstrap', 'mke2fs', 'cpio', 'depmod', 'modprobe', 'dpkg-deb'];
  if (arch !== 'x64') console.warn('skipped: the emulated machines are made on amd64');
  return arch !== 'x64' || rootMissing() || peerMissing(...tools) || (isForeign && emulationMissing());
}

/** The kernel runs programs of arm64 by qemu-user-static: mmdebstrap sets the file system up with them. */
function emulationMissing(): boolean {
  if (peerMissing('qemu-aarch64-static', 'arch-test', 'aarch64-linux-gnu-strip')) return true;
  if (existsSync('/proc/sys/fs/binfmt_misc/qemu-aarch64')) return false;
  console.warn(
    'skipped: /proc/sys/fs/binfmt_misc has no qemu-aarch64; systemctl restart systemd-binfmt, or as root mount it and write /usr/lib/binfmt.d/qemu-aarch64.conf to its register',
  );
  return true;
}

/** Fetches the newest kernel package of the distribution for that architecture into `dir`; answers its file. */
export async function fetchKernel({ architecture }: MachineKind, dir: string): Promise<string> {
  const apt = join(dir, 'apt');
  for (const each of ['lists/partial', 'cache/archives/partial'])
    await mkdir(join(apt, each), { recursive: true });
  // With lists of its own: the machine that tests need not know the other architecture.
  const options = [
    `APT::Architecture=${architecture}`,
    `APT::Architectures=${architecture}`,
    `Dir::State::lists=${apt}/lists`,
    `Dir::Cache=${apt}/cache`,
    'APT::Sandbox::User=root',
  ].flatMap((option) => ['-o', option]);
  await run('apt-get', ...options, 'update', '--quiet', '--quiet');
  const depends = await run('apt-cache', ...options, 'depends', `linux-image-${architecture}`);
  const name = /Depends: (linux-image-\S+)/.exec(depends)?.[1] ?? `linux-image-${architecture}`;
  await execute(program('apt-get'), [...options, 'download', '--quiet', name], { cwd: dir });
  await rm(apt, { recursive: true });
  const deb = (await readdir(dir)).find((file) => file.endsWith('.deb')) ?? '';
  return join(dir, deb);
}
