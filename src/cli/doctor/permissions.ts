/** Checks the permissions of the configuration, the secrets and ICMP. */
import { readFile, stat } from 'node:fs/promises';
import { getgroups } from 'node:process';
import { systemReason } from '../../errors.ts';
import { type Finding, fail, ok, warn } from './finding.ts';
import { obstacle, type ServiceUser } from './service-user.ts';
import type { SecretFile } from './touchpoints.ts';

const world_read = 0o004;
const world_write = 0o002;
const world_any = 0o007;
const ping_range_file = '/proc/sys/net/ipv4/ping_group_range';
/** The value of such a key is a secret; the name of a file that contains one is not. */
const secret_line = /^\s*[\w-]*(?:password|passphrase|secret|token|api_?key)\s*:\s*\S/imu;
const credentials_in_url = /\/\/[^\s/@]+:[^\s/@]+@/u;

export async function checkConfigFile(file: string): Promise<readonly Finding[]> {
  const what = 'permissions of the configuration';
  try {
    const { mode } = await stat(file);
    if ((mode & world_write) !== 0)
      return [fail(what, `every user of this machine can change ${file}`, `run "chmod o-w ${file}"`)];
    const text = await readFile(file, 'utf8');
    const hasSecret = secret_line.test(text) || credentials_in_url.test(text);
    if (hasSecret && (mode & world_read) !== 0) {
      return [warn(what, `${file} contains a secret and every user can read it`, `run "chmod o= ${file}"`)];
    }
    return [ok(what, `${file} is protected`)];
  } catch {
    // The check of the configuration reports a file that cannot be read.
    return [];
  }
}

/** `user`: that of the service, when run by root. */
export async function checkSecretFiles(
  files: readonly SecretFile[],
  user?: ServiceUser,
): Promise<readonly Finding[]> {
  const findings = await Promise.all(files.map(async (file) => checkSecretFile(file, user)));
  return findings.filter((finding) => finding !== undefined);
}

async function checkSecretFile(
  { driver, path, isPublic }: SecretFile,
  user: ServiceUser | undefined,
): Promise<Finding | undefined> {
  const what = `${isPublic ? 'certificate' : 'secret'} of ${driver}`;
  try {
    const { mode, size } = await stat(path);
    if (size === 0)
      return fail(what, `${path} is empty`, 'write the secret into it, then restart kit-connector');
    const barred = user && (await obstacle(path, user, { write: false }));
    if (barred) return fail(what, barred.finding, barred.remedy);
    if (isPublic) return undefined;
    return (mode & world_any) === 0
      ? undefined
      : fail(what, `every user of this machine can access ${path}`, `run "chmod o= ${path}"`);
  } catch (error) {
    return fail(
      what,
      `cannot read ${path} (${systemReason(error)})`,
      'write the secret into this file, readable by the daemon only',
    );
  }
}

/** Whether the user of this process may send echo requests without privileges. */
export async function checkPing(): Promise<readonly Finding[]> {
  const [low = 1, high = 0] = (await readFile(ping_range_file, 'utf8').catch(() => '1 0'))
    .trim()
    .split(/\s+/u)
    .map(Number);
  const groups = getgroups?.() ?? [];
  if (groups.some((gid) => gid >= low && gid <= high))
    return [ok('ping', 'allowed for the groups of this user')];
  const capabilities = /^CapEff:\s*([0-9a-f]+)/mu.exec(
    await readFile('/proc/self/status', 'utf8').catch(() => ''),
  )?.[1];
  const may = capabilities !== undefined && ((BigInt(`0x${capabilities}`) >> cap_net_raw) & 1n) === 1n;
  if (may) return [ok('ping', 'allowed for this user by CAP_NET_RAW')];
  return [
    warn(
      'ping',
      `this user may not send echo requests (net.ipv4.ping_group_range is ${low} ${high})`,
      'run "sysctl -w net.ipv4.ping_group_range=\'0 2147483647\'", as /usr/lib/sysctl.d/50-kit-connector.conf of the package does at each boot; meanwhile links are probed by TCP',
    ),
  ];
}
const cap_net_raw = 13n;
