/** Checks the permissions of the configuration, the secrets and ICMP. */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { getgroups } from 'node:process';
import { hasCode, systemReason } from '../../platform/errors.ts';
import { type Finding, fail, ok, warn } from './finding.ts';
import { obstacle, type ServiceUser } from './service-user.ts';
import { texts } from './texts.ts';
import type { SecretFile } from './touchpoints.ts';
import { file_bytes_max } from '../../kit/config/source.ts';
import { readTextUpTo, small_bytes_max } from '../../platform/bounded-file.ts';

const world_read = 0o004;
const world_write = 0o002;
const world_any = 0o007;
const ping_range_file = '/proc/sys/net/ipv4/ping_group_range';
/** The value of such a key is a secret; the name of a file that contains one is not. */
const secret_line = /^\s*[\w-]*(?:password|passphrase|secret|token|api_?key)\s*:\s*\S/imu;
const credentials_in_url = /\/\/[^\s/@]+:[^\s/@]+@/u;

/** Whether the rights of this user forbid to read the file; false for a missing file. */
export async function isClosed(file: string): Promise<boolean> {
  return access(file, constants.R_OK).then(
    () => false,
    (error: unknown) => hasCode(error, 'EACCES'),
  );
}

/** `user`: that of the service, when run by root. */
export async function checkConfigFile(file: string, user?: ServiceUser): Promise<readonly Finding[]> {
  const what = 'permissions of the configuration';
  try {
    const { mode } = await stat(file);
    const barred = user && (await obstacle(file, user, { write: false }));
    if (barred) return [fail(what, barred.finding, barred.remedy)];
    if ((mode & world_write) !== 0)
      return [fail(what, texts.world_writable(file), texts.run_chmod_write(file))];
    const text = await readTextUpTo(file, file_bytes_max);
    const hasSecret = secret_line.test(text) || credentials_in_url.test(text);
    if (hasSecret && (mode & world_read) !== 0) {
      return [warn(what, texts.secret_world_readable(file), texts.run_chmod(file))];
    }
    return [ok(what, texts.is_protected(file))];
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
    if (size === 0) return fail(what, texts.secret_empty(path), texts.write_secret);
    const barred = user && (await obstacle(path, user, { write: false }));
    if (barred) return fail(what, barred.finding, barred.remedy);
    if (isPublic) return undefined;
    return (mode & world_any) === 0
      ? undefined
      : fail(what, texts.world_accessible(path), texts.run_chmod_all(path));
  } catch (error) {
    return fail(what, texts.secret_unreadable(path, systemReason(error)), texts.write_readable_secret);
  }
}

/** Whether the user of this process may send echo requests without privileges. */
export async function checkPing(): Promise<readonly Finding[]> {
  const [low = 1, high = 0] = (await readTextUpTo(ping_range_file, small_bytes_max).catch(() => '1 0'))
    .trim()
    .split(/\s+/u)
    .map(Number);
  const groups = getgroups?.() ?? [];
  if (groups.some((gid) => gid >= low && gid <= high)) return [ok('ping', texts.icmp_allowed_group)];
  const capabilities = /^CapEff:\s*([0-9a-f]+)/mu.exec(
    await readTextUpTo('/proc/self/status', small_bytes_max).catch(() => ''),
  )?.[1];
  const may = capabilities !== undefined && ((BigInt(`0x${capabilities}`) >> cap_net_raw) & 1n) === 1n;
  if (may) return [ok('ping', texts.icmp_allowed_raw)];
  return [warn('ping', texts.icmp_not_allowed(low, high), texts.allow_icmp)];
}
const cap_net_raw = 13n;
