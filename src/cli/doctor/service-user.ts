/** What the user of the service may do with a file: root, who asks, may do everything. */
import { readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { getuid } from 'node:process';

export const service_name = 'kit-connector';

export interface ServiceUser {
  readonly name: string;
  readonly uid: number;
  readonly gids: ReadonlySet<number>;
}

/** Undefined where this process is not root or the package is not installed: then this process speaks for itself. */
export async function serviceUser(etc = '/etc', uid = getuid?.()): Promise<ServiceUser | undefined> {
  if (uid !== 0) return undefined;
  const linesOf = async (file: string): Promise<readonly (readonly string[])[]> =>
    (await readFile(join(etc, file), 'utf8').catch(() => '')).split('\n').map((line) => line.split(':'));
  const user = (await linesOf('passwd')).find(([name]) => name === service_name);
  if (!user) return undefined;
  const groups = (await linesOf('group')).filter(([, , , members = '']) =>
    members.split(',').includes(service_name),
  );
  return {
    name: service_name,
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

/** Why the user may not, with the remedy; undefined when nothing is in the way. What is not there is no matter of rights. */
export async function obstacle(
  path: string,
  user: ServiceUser,
  { write }: { readonly write: boolean },
): Promise<Obstacle | undefined> {
  if (hidden.test(path)) {
    return {
      finding: `the service does not see ${path}: its sandbox hides home folders and /tmp`,
      remedy: 'move the file to /etc/kit-connector/secrets, and correct the configuration',
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
        finding: `the user ${user.name} may not enter ${folder}, and so not use ${path}`,
        remedy: `move the file to /etc/kit-connector/secrets, or run "chmod o+x ${folder}"`,
      };
    }
  }
  if (await isAllowed(path, user, write ? 0o6 : 0o4)) return undefined;
  return {
    finding: `the user ${user.name} may not ${write ? 'use' : 'read'} ${path}`,
    remedy: write
      ? `let its group be dialout, to which ${user.name} belongs (a rule of udev, or "chgrp dialout ${path}" for now)`
      : `run "chgrp ${user.name} ${path}; chmod 640 ${path}"`,
  };
}

/** Every folder above, from the root on. */
function foldersOf(path: string): readonly string[] {
  const above = dirname(path);
  return above === path ? [] : [...foldersOf(above), above];
}

async function isAllowed(path: string, { uid, gids }: ServiceUser, bits: number): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  if (!found) return true;
  const shift = found.uid === uid ? 6 : gids.has(found.gid) ? 3 : 0;
  return ((found.mode >> shift) & bits) === bits;
}
