/** Resolves the group that may use the control socket. */
import { readFile } from 'node:fs/promises';

/** The number of a group of this machine; undefined when there is none of that name. */
export async function groupId(name: string, groups_file = '/etc/group'): Promise<number | undefined> {
  const lines = (await readFile(groups_file, 'utf8').catch(() => '')).split('\n');
  const [, , gid] = lines.find((line) => line.startsWith(`${name}:`))?.split(':') ?? [];
  return gid === undefined ? undefined : Number(gid);
}
