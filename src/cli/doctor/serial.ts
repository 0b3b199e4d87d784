/** Checks the serial ports of the configured drivers: plugged in, allowed, and not held by another program. */
import { constants } from 'node:fs';
import { access, readdir, readFile, readlink, realpath } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type Finding, fail, ok, warn } from './finding.ts';
import type { SerialPort } from './touchpoints.ts';

const by_id = '/dev/serial/by-id';
const processes_max = 4_096;
/** The daemon's command line, words parted by zero bytes. */
const ourselves = /(?:^|[/\0])kit-connector(?:\.mjs)?(?:[/\0]|$)/u;

/** `proc`: where the kernel shows the processes. */
export async function checkSerialPorts(
  ports: readonly SerialPort[],
  proc = '/proc',
): Promise<readonly Finding[]> {
  return Promise.all(ports.map(async (port) => checkPort(port, proc)));
}

async function checkPort({ driver, path }: SerialPort, proc: string): Promise<Finding> {
  const what = `serial port of ${driver}`;
  const device = await realpath(path).catch(() => undefined);
  if (device === undefined) {
    const others = await readdir(by_id).catch(() => []);
    const seen =
      others.length > 0 ? `; plugged in are ${others.map((name) => join(by_id, name)).join(', ')}` : '';
    return fail(
      what,
      `${path} is not there${seen}`,
      'plug the radio in, try another cable, or correct the path',
    );
  }
  const allowed = await access(device, constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  );
  if (!allowed) {
    return fail(
      what,
      `this user may not use ${path}`,
      'add the user of the daemon to the group of the port (usually: adduser kit-connector dialout), then restart it',
    );
  }
  const holder = await otherHolder(device, proc);
  return holder === undefined
    ? ok(what, `${path} is there`)
    : warn(
        what,
        `${path} is held by ${holder}`,
        `stop that program, or keep it away from the port (ModemManager: ID_MM_DEVICE_IGNORE)`,
      );
}

/** Name and pid of a foreign process that has the device open, as far as this user may see them. */
async function otherHolder(device: string, proc: string): Promise<string | undefined> {
  const pids = (await readdir(proc).catch(() => []))
    .filter((name) => /^\d+$/u.test(name))
    .slice(0, processes_max);
  for (const pid of pids) {
    if (!(await holds(join(proc, pid, 'fd'), device))) continue;
    const command = await readFile(join(proc, pid, 'cmdline'), 'utf8').catch(() => '');
    if (ourselves.test(command)) continue;
    return `${basename(command.split('\0')[0] ?? '') || 'another program'} (process ${pid})`;
  }
  return undefined;
}

async function holds(fd_dir: string, device: string): Promise<boolean> {
  const fds = await readdir(fd_dir).catch(() => []);
  for (const fd of fds) {
    if ((await readlink(join(fd_dir, fd)).catch(() => '')) === device) return true;
  }
  return false;
}
