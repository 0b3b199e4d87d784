/** The daemon as a process that is measured: from its sources or as the package ships it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { within } from '../../../src/platform/time.ts';
import { bundle, versionedPackageFile } from '../../../systemd/package/bundle.ts';
import { node_flags } from './subject.ts';

const root = new URL('../../..', import.meta.url).pathname;
const ready_within_ms = 60_000;
const stop_ms = 15_000;
/** As in systemd/kit-connector.service. */
const shipped_flags = ['--disable-sigusr1', ...node_flags, '--max-old-space-size=192'];

export interface Form {
  readonly name: 'package' | 'sources';
  readonly entry: string;
  readonly env: Readonly<Record<string, string>>;
}

/** The bundle with its cache of compiled code, as the package and its unit have them, and the sources without one. */
export async function makeForms(dir: string): Promise<readonly Form[]> {
  const app = join(dir, 'package/app');
  await mkdir(app, { recursive: true });
  await bundle(root, app);
  await writeFile(join(app, 'package.json'), await versionedPackageFile(root, '0.0.0'));
  await symlink(join(root, 'node_modules'), join(dir, 'package/node_modules'));
  return [
    {
      name: 'package',
      entry: join(app, 'kit-connector.mjs'),
      env: { NODE_COMPILE_CACHE: join(dir, 'compiled'), MALLOC_ARENA_MAX: '1' },
    },
    { name: 'sources', entry: join(root, 'src/kit-connector.mjs'), env: { NODE_DISABLE_COMPILE_CACHE: '1' } },
  ];
}

export interface Daemon {
  readonly pid: number;
  /** From the start of the process until it said that it runs. */
  readonly ready_ms: number;
  stop(): Promise<void>;
}

/** Starts one and waits until it runs; `prefix` is put before its command line. */
export async function startDaemon(
  form: Form,
  config_file: string,
  prefix: readonly string[] = [],
): Promise<Daemon> {
  const line = [...prefix, process.execPath, ...shipped_flags, form.entry, 'run', '--config', config_file];
  const [command = '', ...args] = line;
  const begin_ms = performance.now();
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    // Authorities that this machine adds to Node's own would be counted as the daemon's memory.
    env: { ...process.env, NODE_EXTRA_CA_CERTS: '', ...form.env },
  });
  const said: string[] = [];
  const ready = new Promise<number>((resolve) => {
    createInterface({ input: child.stdout }).on('line', (text) => {
      if (said.length < said_max) said.push(text);
      if (text.includes('kit-connector started')) resolve(performance.now() - begin_ms);
    });
  });
  const ended = once(child, 'exit').then(() => undefined);
  const ready_ms = await within(ready_within_ms, Promise.race([ready, ended]));
  if (ready_ms === undefined) {
    child.kill('SIGKILL');
    throw new Error(`the daemon (${form.name}) did not start: ${said.join('\n')}`);
  }
  return { pid: child.pid ?? 0, ready_ms, stop: async () => end(child) };
}
const said_max = 200;

/** Asks a process to end, and makes it if it does not. */
export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  if (await within(stop_ms, exited)) return;
  child.kill('SIGKILL');
  await exited;
}
