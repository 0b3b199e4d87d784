/** Facts of the machine for a support bundle, omitting what cannot be read. */
import { readdir, stat, statfs } from 'node:fs/promises';
import {
  arch,
  cpus,
  freemem,
  hostname,
  loadavg,
  networkInterfaces,
  release,
  totalmem,
  uptime,
} from 'node:os';
import { join } from 'node:path';
import { readTextUpTo, table_bytes_max } from '../../platform/bounded-file.ts';

const files = {
  os_release: '/etc/os-release',
  mounts: '/proc/mounts',
  memory: '/proc/meminfo',
  routes: '/proc/net/route',
  resolv_conf: '/etc/resolv.conf',
  pressure_io: '/proc/pressure/io',
} as const;
const file_chars_max = 20_000;

export async function systemFacts(state_dir: string | undefined): Promise<object> {
  return {
    hostname: hostname(),
    kernel: release(),
    arch: arch(),
    cpus: cpus().map(({ model, speed }) => `${model} ${speed} MHz`),
    memory_bytes: { total: totalmem(), free: freemem() },
    uptime_s: Math.round(uptime()),
    load: loadavg(),
    interfaces: networkInterfaces(),
    files: await readAll(files),
    serial: await readdir('/dev/serial/by-id').catch(() => []),
    state_dir: state_dir === undefined ? null : await directoryFacts(state_dir),
  };
}

async function readAll(named: Readonly<Record<string, string>>): Promise<Record<string, string>> {
  const read = Object.entries(named).map(async ([name, file]) => {
    const text = await readTextUpTo(file, table_bytes_max).catch(() => '');
    return [name, text.slice(0, file_chars_max)] as const;
  });
  return Object.fromEntries((await Promise.all(read)).filter(([, text]) => text !== ''));
}

async function directoryFacts(dir: string): Promise<object> {
  const names = await readdir(dir).catch(() => []);
  const sizes = names.map(
    async (name) => [name, (await stat(join(dir, name)).catch(() => undefined))?.size ?? null] as const,
  );
  const disk = await statfs(dir).catch(() => undefined);
  return {
    dir,
    bytes: Object.fromEntries(await Promise.all(sizes)),
    free_bytes: disk ? disk.bavail * disk.bsize : null,
    free_inodes: disk?.ffree ?? null,
  };
}
