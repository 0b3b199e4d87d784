/** Who is at the other end of a Unix socket, as the kernel knows it (SO_PEERCRED of unix(7)). */
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { endianness } from 'node:os';
import { libc } from './libc.ts';
import { sol_socket } from './socket-options.ts';
import { descriptorOf } from './unsent-bytes.ts';

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
    const uid = await peerUid(socket);
    return uid === null ? unknown : { uid, name: nameOf(uid, await readFile('/etc/passwd', 'utf8')) };
  } catch {
    return unknown;
  }
}

async function peerUid(socket: Socket): Promise<number | null> {
  const fd = descriptorOf(socket);
  if (fd === null) return null;
  const { getsockopt } = await libc();
  const [ucred, bytes] = [Buffer.alloc(ucred_bytes), Buffer.alloc(4)];
  const isLittle = endianness() === 'LE';
  if (isLittle) bytes.writeUInt32LE(ucred_bytes);
  else bytes.writeUInt32BE(ucred_bytes);
  if (getsockopt(fd, sol_socket, so_peercred, ucred, bytes) !== 0) return null;
  return isLittle ? ucred.readUInt32LE(uid_at) : ucred.readUInt32BE(uid_at);
}

function nameOf(uid: number, passwd: string): string | null {
  const fields = passwd.split('\n').map((line) => line.split(':'));
  return fields.find(([, , id]) => id === String(uid))?.[0] ?? null;
}
