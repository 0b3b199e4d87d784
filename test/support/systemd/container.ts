/** A Debian with a real systemd in a container that is thrown away, for what only an installed package can show. */
import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { eventually } from '../eventually.ts';
import { dyingWithUs, peerMissing, program, rootMissing } from '../peers.ts';
import { makeDirectory, run } from '../temporary.ts';

const execute = promisify(execFile);

/** Root file systems and kernels are kept between runs, outside of the sources. */
export const cache_dir = process.env['KIT_CONNECTOR_TEST_CACHE'] ?? '/var/cache/kit-connector-test';
const suite = 'bookworm';
const packages = ['systemd', 'systemd-sysv', 'dbus', 'iproute2', 'procps', 'init-system-helpers'];

/** The container has the clock and the kernel of this machine: what enters it gets the rights that nspawn gives, not all of root. */
export const limited: readonly string[] = [
  'setpriv',
  '--bounding-set=-sys_time,-sys_module,-sys_rawio',
  '--',
];

/** For `describe.skipIf`, with a printed reason. */
export function containerMissing(): boolean {
  const tools = ['systemd-nspawn', 'mmdebstrap', 'dpkg-deb', 'nsenter', 'unshare', 'setpriv'];
  return rootMissing() || peerMissing(...tools);
}

/** What `execFile` rejects with when the program itself ended with a code. */
const failure = z.looseObject({ code: z.number(), stdout: z.string(), stderr: z.string() });

export interface Outcome {
  readonly code: number;
  readonly output: string;
}

export interface Container {
  /** Runs a program inside; answers its exit code and what it printed on both outputs. */
  readonly attempt: (...command: readonly string[]) => Promise<Outcome>;
  /** The same for what has to succeed: answers what it printed, trimmed. */
  readonly run: (...command: readonly string[]) => Promise<string>;
  /** A line for the shell inside. */
  readonly sh: (line: string) => Promise<string>;
  readonly stop: () => Promise<void>;
}

/** A directory with these packages and all that they need, made once with mmdebstrap, half a minute; the name tells what is in it. */
export async function rootFileSystem(packages: readonly string[], architecture?: string): Promise<string> {
  const name = `${suite}${architecture === undefined ? '' : `-${architecture}`}-${packages.join('-')}`;
  const dir = join(cache_dir, name);
  if (existsSync(dir)) return dir;
  const unfinished = `${dir}.${process.pid}`;
  await mkdir(cache_dir, { recursive: true });
  try {
    // What it mounts inside belongs to a namespace of its own: were the test killed, removing the directory would empty the machine.
    const [command, ...guards] = [...dyingWithUs(), program('unshare'), '--mount', program('mmdebstrap')];
    const options = [
      '--quiet',
      '--variant=minbase',
      ...(architecture === undefined ? [] : [`--arch=${architecture}`]),
      `--include=${packages.join(',')}`,
    ];
    await execute(command, [...guards, ...options, suite, unfinished]);
    await rename(unfinished, dir);
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
  return dir;
}

/** The mounts belong to a namespace of their own and end with the container, also when the test is killed. */
const boot = `
mount -t tmpfs -o size=2g tmpfs "$1"
mkdir "$1/changes" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=$2,upperdir=$1/changes,workdir=$1/work" "$1/root"
exec "$4" --quiet --register=no --keep-unit --directory="$1/root" --machine=kit-connector-test --private-network \\
  --bind-ro="$3:/packages" --boot --console=pipe systemd.unit=multi-user.target
`;

/** An image as a builder of devices makes it: installed in a directory, never booted, nothing in it runs. Needs root. */
export async function makeImage(dir: string, debs: readonly string[]): Promise<string> {
  const root = join(dir, 'image');
  await run('cp', '--archive', await rootFileSystem(packages), root);
  await installInto(root, debs);
  // As systemd asks for in an image: machine-id(5).
  await writeFile(join(root, 'etc/machine-id'), '');
  return root;
}

/** Installs packages in a directory in which nothing runs, and keeps their files in its `/root`. */
export async function installInto(root: string, debs: readonly string[]): Promise<void> {
  const files = debs.map((deb) => `/root/${basename(deb)}`);
  for (const deb of debs) await copyFile(deb, join(root, 'root', basename(deb)));
  // With a /proc of its own, whose mount ends with it.
  const inside = ['--mount', '--pid', '--fork', `--root=${root}`, '--mount-proc'];
  const [command = '', ...rights] = limited;
  await run(command, ...rights, 'unshare', ...inside, '/usr/bin/dpkg', '--install', ...files);
}

/**
 * Boots one whose `/packages` is the directory `shared`, from the root file system of an image or a bare one. Resolves when
 * systemd has started everything; with `isEarly` as soon as it answers.
 */
export async function startContainer(
  shared: string,
  { image, isEarly = false }: { readonly image?: string; readonly isEarly?: boolean } = {},
): Promise<Container> {
  const root = image ?? (await rootFileSystem(packages));
  const place = await makeDirectory();
  mkdirSync(shared, { recursive: true });
  const [first, ...rest] = [
    ...dyingWithUs(),
    program('unshare'),
    '--mount',
    'sh',
    '-ec',
    boot,
    'boot',
    place,
    root,
    shared,
    program('systemd-nspawn'),
  ];
  const nspawn = spawn(first, rest, { stdio: ['ignore', 'pipe', 'pipe'] });
  let console_text = '';
  for (const stream of [nspawn.stdout, nspawn.stderr])
    stream.on('data', (chunk: Buffer) => (console_text += chunk.toString()));
  const ended = once(nspawn, 'exit');

  let leader = '';
  const attempt = async (...command: readonly string[]): Promise<Outcome> => {
    const inside = [
      '--target',
      leader,
      '--all',
      '--',
      ...limited,
      'env',
      '-i',
      `PATH=${path}`,
      'LC_ALL=C.UTF-8',
      ...command,
    ];
    try {
      const { stdout, stderr } = await execute(program('nsenter'), inside, { maxBuffer: output_bytes_max });
      return { code: 0, output: `${stdout}${stderr}`.trim() };
    } catch (error) {
      const failed = failure.safeParse(error);
      if (!failed.success) throw error;
      const { code, stdout, stderr } = failed.data;
      return { code, output: `${stdout}${stderr}`.trim() };
    }
  };
  const inside = async (...command: readonly string[]): Promise<string> => {
    const { code, output } = await attempt(...command);
    if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}: ${output}`);
    return output;
  };
  const stop = async (): Promise<void> => {
    if (leader !== '') await attempt('systemctl', 'poweroff');
    const given_up = setTimeout(() => nspawn.kill('SIGKILL'), stop_ms);
    await ended;
    clearTimeout(given_up);
    await rm(place, { recursive: true, force: true });
  };
  try {
    await eventually(
      'systemd is up',
      async () => {
        if (nspawn.exitCode !== null) throw new Error(`the container ended: ${console_text}`);
        leader = (await childrenOf(nspawn.pid ?? 0))[0] ?? '';
        if (leader === '') return false;
        const { output } = await attempt('systemctl', 'is-system-running').catch(() => ({ output: '' }));
        return output === 'running' || output === 'degraded' || (isEarly && output === 'starting');
      },
      boot_ms,
    );
  } catch (error) {
    nspawn.kill('SIGKILL');
    await stop();
    throw new Error(`the container did not start: ${console_text}`, { cause: error });
  }
  return { attempt, run: inside, sh: async (line) => inside('sh', '-c', line), stop };
}

const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const output_bytes_max = 16 * 1024 * 1024;
const boot_ms = 60_000;
const stop_ms = 15_000;

async function childrenOf(pid: number): Promise<readonly string[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  return text.split(' ').filter(Boolean);
}

if (import.meta.main) await rootFileSystem(packages);
