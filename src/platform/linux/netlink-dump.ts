/** Lists all entries of one of the kernel's tables: one netlink request, and its answers to the end. */
import { DeviceUnreachable } from '../errors.ts';
import { texts } from '../texts.ts';
import { reasonOf } from './bound-fd.ts';
import { type Libc, libc } from './libc.ts';
import { dumpRequest, type Message, readMessages } from './netlink-message.ts';

/** A table of rtnetlink(7). */
export interface Table {
  /** What it holds, for the sentence of an error: `routes`. */
  readonly of: string;
  /** Message types of the request and of its answers: `RTM_GETROUTE`, `RTM_NEWROUTE`. */
  readonly ask: number;
  readonly answer: number;
  /** Of the family header that begins every message. */
  readonly header_bytes: number;
}

const af_netlink = 16;
const sock_raw_nonblock_cloexec = 3 | 0o4000 | 0o2000000;
const netlink_route = 0;
const nlmsg_error = 2;
const nlmsg_done = 3;
const nlm_f_dump_intr = 0x10;

const datagram_bytes_max = 65_536;
/** Datagrams of one listing, of some hundred entries each: far beyond a gateway's, and no harm to memory. */
const datagrams_max = 1_024;
/** A change during a listing makes it begin again; after so many the last listing is used. */
const attempts_max = 5;

/**
 * The bodies of all entries, of every address family. The kernel fills the answers of a dump as they are fetched, so nothing
 * waits. Rejects with `DeviceUnreachable` when the kernel, or a sandbox, refuses.
 */
export async function dumpTable(table: Table): Promise<readonly Buffer[]> {
  const c = await libc();
  let listing = listOnce(c, table);
  for (let attempt = 1; listing.torn && attempt < attempts_max; attempt += 1) listing = listOnce(c, table);
  return listing.bodies;
}

interface Listing {
  readonly bodies: readonly Buffer[];
  /** The table changed while it was listed. */
  readonly torn: boolean;
}

/** Uses a separate socket, so that no other listing and no notification comes between. */
function listOnce(c: Libc, table: Table): Listing {
  const failed = (): DeviceUnreachable =>
    new DeviceUnreachable(texts.table_not_listed(table.of, reasonOf(c.errno())));
  const fd = c.socket(af_netlink, sock_raw_nonblock_cloexec, netlink_route);
  if (fd < 0) throw failed();
  try {
    const request = dumpRequest(table.ask, 1, table.header_bytes);
    if (c.sendto(fd, request, request.length, 0, null, 0) < 0) throw failed();
    const bodies: Buffer[] = [];
    let torn = false;
    const room = Buffer.alloc(datagram_bytes_max);
    for (let count = 0; count < datagrams_max; count += 1) {
      const bytes = c.recvfrom(fd, room, room.length, 0, null, null);
      if (bytes < 0) throw failed();
      const messages = readMessages(Buffer.from(room.subarray(0, bytes)));
      bodies.push(...messages.filter(({ type }) => type === table.answer).map(({ body }) => body));
      torn ||= messages.some(({ flags }) => (flags & nlm_f_dump_intr) !== 0);
      if (messages.some((message) => isLast(message, table))) break;
    }
    return { bodies, torn };
  } finally {
    c.close(fd);
  }
}

function isLast({ type, body }: Message, table: Table): boolean {
  if (type !== nlmsg_error) return type === nlmsg_done;
  const errno = body.length >= 4 ? -body.readInt32LE(0) : 0;
  throw new DeviceUnreachable(texts.table_refused(table.of, errno));
}
