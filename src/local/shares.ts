/** How many connections to the control socket one process and one user may have, so that none of them keeps out a technician. */
import type { Socket } from 'node:net';
import type { Share } from '../platform/http-server/connection-guard.ts';
import { peerOf, type SocketPeer } from '../platform/linux/socket-user.ts';

export interface SharesLog {
  warn(facts: object, sentence: string): void;
}

export const process_connections_max = 16;
export const user_connections_max = 32;
/** Of all users but root: the rest is reserved for root. */
export const others_connections_max = 56;

/** The shares of the process that connected. Never rejects: unidentified processes have a share together. */
export async function sharesOf(socket: Socket): Promise<readonly Share[]> {
  return sharesFor(await peerOf(socket).catch(() => null));
}

export function sharesFor(peer: SocketPeer | null): readonly Share[] {
  const user = { name: `user ${peer?.uid ?? 'unknown'}`, connections_max: user_connections_max };
  const others = { name: 'users other than root', connections_max: others_connections_max };
  const ofUser = peer?.uid === 0 ? [user] : [user, others];
  return peer
    ? [{ name: `process ${peer.pid}`, connections_max: process_connections_max }, ...ofUser]
    : ofUser;
}
