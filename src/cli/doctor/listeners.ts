/** Checks that the daemon, and no other process, listens on its ports. */
import { join, basename } from 'node:path';
import { readdir, readlink } from 'node:fs/promises';
import { type Finding, fail, ok, warn } from './finding.ts';
import { texts } from './texts.ts';
import { readTextUpTo, table_bytes_max } from '../../platform/bounded-file.ts';

export interface Listener {
  /** `metrics`, `driver mavlink` */
  readonly what: string;
  readonly protocol: 'tcp' | 'udp';
  readonly host: string;
  readonly port: number;
}

/** As in tcp_states.h of the kernel: LISTEN, and CLOSE for an unconnected UDP socket. */
const waiting = { tcp: '0A', udp: '07' } as const;
const any_v4 = '00000000';
const any_v6 = '0'.repeat(32);

/** Free ports are not reported while the daemon is stopped. */
export async function checkListeners(
  listeners: readonly Listener[],
  { runs }: { readonly runs: boolean },
  proc = '/proc',
): Promise<readonly Finding[]> {
  const findings = await Promise.all(listeners.map(async (each) => checkListener(each, runs, proc)));
  return findings.filter((finding) => finding !== undefined);
}

async function checkListener(listener: Listener, runs: boolean, proc: string): Promise<Finding | undefined> {
  const { protocol, host, port } = listener;
  const what = texts.port_of(listener.what);
  const place = texts.port_place(protocol.toUpperCase(), port, host);
  const inodes = await socketsAt(listener, proc);
  if (inodes.length === 0) {
    return runs ? warn(what, texts.nothing_listens(place), texts.restart_after_change) : undefined;
  }
  const holders = (
    await Promise.all(inodes.map(async (inode) => holdersOf(`socket:[${inode}]`, proc)))
  ).flat();
  const foreign = holders.find(({ isOurs }) => !isOurs);
  if (foreign) {
    return fail(what, texts.port_used(place, foreign.name), texts.stop_or_choose_port);
  }
  // Only root can see the owner of a socket; while the daemon runs, it is assumed to be the owner.
  if (holders.length > 0 || runs) return runs ? ok(what, texts.daemon_listens(place)) : undefined;
  return fail(what, texts.port_used_unknown(place), texts.find_with_ss);
}

/** Inodes of the sockets that conflict with a listener on this address. */
async function socketsAt({ protocol, host, port }: Listener, proc: string): Promise<readonly string[]> {
  const rows = await Promise.all(
    [protocol, `${protocol}6`].map(async (table) =>
      (await readTextUpTo(join(proc, 'net', table), table_bytes_max).catch(() => '')).split('\n').slice(1),
    ),
  );
  return rows.flat().flatMap((row) => {
    const [, local = '', , state, , , , , , inode] = row.trim().split(/\s+/u);
    const [address = '', hex = ''] = local.split(':');
    const isThere = Number.parseInt(hex, 16) === port && state === waiting[protocol];
    return isThere && inode !== undefined && conflicts(address, host) ? [inode] : [];
  });
}

/** Whether an address in kernel notation conflicts with one of the configuration. */
function conflicts(address: string, host: string): boolean {
  if (address === any_v4 || address === any_v6 || host === '0.0.0.0' || host === '::') return true;
  if (address === hexOf(host)) return true;
  return host === 'localhost' && address === hexOf('127.0.0.1');
}

/** `127.0.0.1` is `0100007F`: the kernel prints the number in host byte order. IPv6 is not compared. */
function hexOf(host: string): string {
  const bytes = host.split('.').map(Number);
  return bytes.length === 4
    ? bytes
        .toReversed()
        .map((byte) => byte.toString(16).padStart(2, '0').toUpperCase())
        .join('')
    : '';
}

const processes_max = 4_096;
/** The command line of the daemon, with zero bytes between its arguments. */
const ourselves = /(?:^|[/\0])kit-connector(?:\.mjs)?(?:[/\0]|$)/u;

interface Holder {
  /** `socat (process 12)` */
  readonly name: string;
  readonly isOurs: boolean;
}

/** `target`: a path, or `socket:[INODE]`. `proc`: mount point of procfs. */
export async function holdersOf(target: string, proc: string): Promise<readonly Holder[]> {
  const pids = (await readdir(proc).catch(() => []))
    .filter((name) => /^\d+$/u.test(name))
    .slice(0, processes_max);
  const holders: Holder[] = [];
  for (const pid of pids) {
    if (!(await holds(join(proc, pid, 'fd'), target))) continue;
    const command = await readTextUpTo(join(proc, pid, 'cmdline'), table_bytes_max).catch(() => '');
    const program = basename(command.split('\0')[0] ?? '') || 'another program';
    holders.push({ name: `${program} (process ${pid})`, isOurs: ourselves.test(command) });
  }
  return holders;
}

async function holds(fd_dir: string, target: string): Promise<boolean> {
  const fds = await readdir(fd_dir).catch(() => []);
  for (const fd of fds) {
    if ((await readlink(join(fd_dir, fd)).catch(() => '')) === target) return true;
  }
  return false;
}
