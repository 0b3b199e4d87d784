/** The file permissions of the service user, for when root runs the check. */
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { getuid } from 'node:process';
import { texts } from './texts.ts';
import { readTextUpTo, table_bytes_max } from '../../platform/bounded-file.ts';

export const service_name = 'kit-connector';

export interface ServiceUser {
  readonly name: string;
  readonly uid: number;
  readonly gids: ReadonlySet<number>;
}

/** Undefined if this process is not root or the package is not installed: then its own permissions count. */
export async function serviceUser(
  etc = '/etc',
  uid = getuid?.(),
  name = service_name,
): Promise<ServiceUser | undefined> {
  return uid === 0 ? installedUser(etc, name) : undefined;
}

/** The user that the package created; undefined if it is not installed. */
export async function installedUser(etc = '/etc', name = service_name): Promise<ServiceUser | undefined> {
  const linesOf = async (file: string): Promise<readonly (readonly string[])[]> =>
    (await readTextUpTo(join(etc, file), table_bytes_max).catch(() => ''))
      .split('\n')
      .map((line) => line.split(':'));
  const user = (await linesOf('passwd')).find(([each]) => each === name);
  if (!user) return undefined;
  const groups = (await linesOf('group')).filter(([, , , members = '']) => members.split(',').includes(name));
  return {
    name,
    uid: Number(user[2]),
    gids: new Set([Number(user[3]), ...groups.map(([, , gid]) => Number(gid))]),
  };
}

interface Obstacle {
  readonly finding: string;
  readonly remedy: string;
}

/** The sandbox of the unit: ProtectHome and PrivateTmp. */
const hidden = /^\/(?:home|root|run\/user|tmp|var\/tmp)(?:\/|$)/u;

/** The reason why the user has no access, with the remedy; undefined with access, and for a missing file. */
export async function obstacle(
  path: string,
  user: ServiceUser,
  { write }: { readonly write: boolean },
): Promise<Obstacle | undefined> {
  if (hidden.test(path)) {
    return {
      finding: texts.hidden_by_sandbox(path),
      remedy: texts.move_secret(user.name),
    };
  }
  return lackOfRights(path, user, { write });
}

/** The same by owners, groups and modes alone. */
export async function lackOfRights(
  path: string,
  user: ServiceUser,
  { write }: { readonly write: boolean },
): Promise<Obstacle | undefined> {
  for (const folder of foldersOf(path)) {
    if (!(await isAllowed(folder, user, 0o1))) {
      return {
        finding: texts.folder_denied(user.name, folder, path),
        remedy: texts.move_or_open_folder(user.name, folder),
      };
    }
  }
  if (await isAllowed(path, user, write ? 0o6 : 0o4)) return undefined;
  return {
    finding: texts.file_denied(user.name, write ? 'open' : 'read', path),
    remedy: write ? texts.set_dialout_group(user.name, path) : texts.run_chgrp(user.name, path),
  };
}

/** All parent directories, from the root. */
function foldersOf(path: string): readonly string[] {
  const above = dirname(path);
  return above === path ? [] : [...foldersOf(above), above];
}

/** Whether the user has all of these bits (4 read, 2 write, 1 enter); true for a missing file. */
export async function isAllowed(path: string, { uid, gids }: ServiceUser, bits: number): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  if (!found) return true;
  const shift = found.uid === uid ? 6 : gids.has(found.gid) ? 3 : 0;
  return ((found.mode >> shift) & bits) === bits;
}
