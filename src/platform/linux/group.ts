/** Resolves the group that may use the control socket. */
import { readTextUpTo, table_bytes_max } from '../bounded-file.ts';

/** The number of a group of this machine; undefined when there is none of that name. */
export async function groupId(name: string, groups_file = '/etc/group'): Promise<number | undefined> {
  const lines = (await readTextUpTo(groups_file, table_bytes_max).catch(() => '')).split('\n');
  const [, , gid] = lines.find((line) => line.startsWith(`${name}:`))?.split(':') ?? [];
  return gid === undefined ? undefined : Number(gid);
}
