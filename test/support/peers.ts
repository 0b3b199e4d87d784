/** Finds the programs of others that tests run against, and decides what happens where one is missing. */
import { existsSync, globSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { getuid } from 'node:process';

/** Debian keeps servers and disk tools here, which the path of a plain user does not name. */
const server_dirs = [
  '/usr/sbin',
  '/sbin',
  '/usr/local/sbin',
  ...globSync('/usr/lib/postgresql/*/bin').sort().reverse(),
];

/** The path of an installed program, or undefined. */
export function findProgram(name: string): string | undefined {
  const dirs = [...(process.env['PATH'] ?? '').split(delimiter), ...server_dirs];
  return dirs.map((dir) => join(dir, name)).find((path) => existsSync(path));
}

/** The path of a program that the caller cannot do without. */
export function program(name: string): string {
  const path = findProgram(name);
  if (path === undefined) throw new Error(`${name} is not installed: apt-get install ${name}`);
  return path;
}

/** Put before a command line, so that the program does not outlive a test process that was killed; empty where it cannot be. */
export function dyingWithUs(): readonly string[] {
  const setpriv = findProgram('setpriv');
  return setpriv === undefined ? [] : [setpriv, '--pdeathsig', 'KILL', '--'];
}

/**
 * For `describe.skipIf`: true, with a printed reason, where one of the programs is missing. With
 * KIT_CONNECTOR_REQUIRE_PEERS=1 it is always false, so that the tests run and fail there instead of being skipped.
 */
export function peerMissing(...names: readonly string[]): boolean {
  const missing = names.filter((name) => findProgram(name) === undefined);
  return skips(missing.length > 0, `${missing.join(', ')} not installed`);
}

/** The same for what only root may do: loop devices, network namespaces. */
export function rootMissing(): boolean {
  return skips(getuid?.() !== 0, 'needs root');
}

function skips(lacking: boolean, reason: string): boolean {
  if (!lacking || process.env['KIT_CONNECTOR_REQUIRE_PEERS'] === '1') return false;
  console.warn(`skipped: ${reason}`);
  return true;
}
