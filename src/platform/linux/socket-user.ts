/** Who is at the other end of a Unix socket, as the kernel knows it (SO_PEERCRED of unix(7)). */
import type { Socket } from 'node:net';
import { libc } from './libc.ts';
import { bytesOf, sol_socket } from './socket-options.ts';
import { descriptorOf } from './unsent-bytes.ts';
import { readTextUpTo, table_bytes_max } from '../bounded-file.ts';

export interface SocketUser {
  readonly uid: number | null;
  /** As in /etc/passwd; null where it is not there. */
  readonly name: string | null;
}

const so_peercred = 17;
/** `struct ucred`: pid, uid, gid, four bytes each. */
const ucred_bytes = 12;
const uid_at = 4;
const unknown: SocketUser = { uid: null, name: null };

/** Never rejects: a user who cannot be found out is unknown. */
export async function userOf(socket: Socket): Promise<SocketUser> {
  try {
    const uid = await uidOf(socket);
    return uid === null
      ? unknown
      : { uid, name: nameOf(uid, await readTextUpTo('/etc/passwd', table_bytes_max)) };
  } catch {
    return unknown;
  }
}

/** Null where the kernel does not name it. Rejects without a C library to ask it with. */
async function uidOf(socket: Socket): Promise<number | null> {
  const { getsockopt } = await libc();
  const fd = descriptorOf(socket);
  if (fd === null) return null;
  const ucred = Buffer.alloc(ucred_bytes);
  if (getsockopt(fd, sol_socket, so_peercred, ucred, bytesOf(ucred_bytes)) !== 0) return null;
  return ucred.readUInt32LE(uid_at);
}

function nameOf(uid: number, passwd: string): string | null {
  const fields = passwd.split('\n').map((line) => line.split(':'));
  return fields.find(([, , id]) => id === String(uid))?.[0] ?? null;
}
