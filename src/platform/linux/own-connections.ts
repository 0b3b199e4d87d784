/** The TCP connections of this process that the far side answers, and the way of each: evidence of what a link carries. */
import { readdirSync } from 'node:fs';
import { type Libc, libc } from './libc.ts';
import { wayFinder } from './route-lookup.ts';
import { decodeSocketAddress, socket_address_bytes } from './socket-address.ts';
import { bytesOf, sol_socket } from './socket-options.ts';
import { tcpInfo } from './tcp-info.ts';

export interface OwnConnection {
  /** Interface that its packets leave by. */
  readonly ifindex: number;
  readonly local_ip: string;
  readonly remote_ip: string;
  /** The far side stands behind a router. */
  readonly hasRouter: boolean;
  /** When the far side sent data last (`performance.now()`). An accelerator on the way acknowledges by itself, but makes up no data. */
  readonly received_ms: number;
}

/** Since Linux 5.8; the index of the device that a socket is bound to. */
const so_bindtoifindex = 62;
/** A segment that was sent again so many times shows that nothing comes back now. */
const repeats_max = 2;
const descriptors = '/proc/self/fd';

/** Loads the functions once; each look is synchronous then. */
export async function ownConnections(): Promise<() => readonly OwnConnection[]> {
  const c = await libc();
  const wayOf = await wayFinder();
  const look = (fd: number): readonly OwnConnection[] => {
    const info = tcpInfo(c, fd);
    if (!info?.isEstablished || info.silent_ms === null || info.retransmits >= repeats_max) return [];
    const local_ip = addressOf(fd, c.getsockname);
    const remote_ip = addressOf(fd, c.getpeername);
    if (local_ip === null || remote_ip === null) return [];
    const way = wayOf({ ip: remote_ip, source_ip: local_ip });
    const ifindex = boundIndex(c, fd) ?? way?.ifindex;
    if (ifindex === undefined) return [];
    const received_ms = performance.now() - info.silent_ms;
    return [{ ifindex, local_ip, remote_ip, hasRouter: way?.hasRouter ?? false, received_ms }];
  };
  return () => readdirSync(descriptors).flatMap((fd) => look(Number(fd)));
}

function addressOf(fd: number, ask: Libc['getsockname']): string | null {
  const address = Buffer.alloc(socket_address_bytes);
  if (ask(fd, address, bytesOf(socket_address_bytes)) !== 0) return null;
  return decodeSocketAddress(address);
}

function boundIndex(c: Libc, fd: number): number | undefined {
  const index = new Int32Array(1);
  const bytes = new Uint8Array(index.buffer);
  if (c.getsockopt(fd, sol_socket, so_bindtoifindex, bytes, bytesOf(bytes.length)) !== 0) return undefined;
  return index[0] === 0 ? undefined : index[0];
}
