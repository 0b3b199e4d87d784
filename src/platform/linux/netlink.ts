/** The kernel's networking by netlink(7): requests to rtnetlink(7), listings of its tables, and notifications of changes. */
import { DeviceUnreachable } from '../errors.ts';
import { texts } from '../texts.ts';
import { reasonOf } from './bound-fd.ts';
import { type Libc, libc } from './libc.ts';

const af_netlink = 16;
const sock_raw_nonblock_cloexec = 3 | 0o4000 | 0o2000000;
const netlink_route = 0;
const header_bytes = 16;
const nlm_f_request = 0x1;
const nlm_f_dump = 0x300;
const nlm_f_dump_intr = 0x10;
const nlmsg_error = 2;
const nlmsg_done = 3;
/** The kernel puts at most 32 KiB into one datagram of a dump. */
const datagram_bytes_max = 65_536;

/** Messages of a request and of its answers: `RTM_GETROUTE`, `RTM_NEWROUTE`. */
interface Exchange {
  readonly ask: number;
  readonly answer: number;
}

interface Request extends Exchange {
  /** The header of the family. */
  readonly header: Buffer;
  readonly attributes: readonly Buffer[];
}

/** The body of the answer, on a separate socket; null for a refusal, which is how the kernel reports that there is none. */
export function askNetlink(c: Libc, { ask, answer, header, attributes }: Request): Buffer | null {
  const fd = c.socket(af_netlink, sock_raw_nonblock_cloexec, netlink_route);
  if (fd < 0) return null;
  try {
    if (!send(c, fd, frame(ask, nlm_f_request, [header, ...attributes]))) return null;
    const room = Buffer.alloc(datagram_bytes_max);
    const length = c.recvfrom(fd, room, room.length, 0, null, null);
    const messages = length < 0 ? [] : readMessages(room.subarray(0, length));
    return messages.find(({ type }) => type === answer)?.body ?? null;
  } finally {
    c.close(fd);
  }
}

function frame(type: number, flags: number, parts: readonly Buffer[]): Buffer {
  const whole = Buffer.concat([Buffer.alloc(header_bytes), ...parts]);
  whole.writeUInt32LE(whole.length, 0);
  whole.writeUInt16LE(type, 4);
  whole.writeUInt16LE(flags, 6);
  whole.writeUInt32LE(1, 8);
  return whole;
}

function send(c: Libc, fd: number, request: Buffer): boolean {
  return c.sendto(fd, request, request.length, 0, null, 0) >= 0;
}

/** An attribute of a request. */
export function attribute(type: number, value: Uint8Array): Buffer {
  const bytes = Buffer.alloc(aligned(4 + value.length));
  bytes.writeUInt16LE(4 + value.length, 0);
  bytes.writeUInt16LE(type, 2);
  bytes.set(value, 4);
  return bytes;
}

const of_link: Exchange = { ask: 18, answer: 16 };
const interface_header_bytes = 16;
const ifla_alt_ifname = 53;
const flags_at = 8;
const iff_running = 0x40;

/** Whether the interface can carry packets: it is up and, where it has a carrier, has one (RFC 2863 `ifOperStatus`). */
export function isRunning(c: Libc, ifindex: number): boolean {
  const header = Buffer.alloc(interface_header_bytes);
  header.writeUInt32LE(ifindex, 4);
  const found = askNetlink(c, { ...of_link, header, attributes: [] });
  return found !== null && (found.readUInt32LE(flags_at) & iff_running) !== 0;
}

/** The index of the interface with this name or alternative name (ip-link(8), `altname`); null: there is none. */
export function interfaceNamed(c: Libc, name: string): number | null {
  const header = Buffer.alloc(interface_header_bytes);
  const attributes = [attribute(ifla_alt_ifname, Buffer.from(`${name}\0`))];
  return askNetlink(c, { ...of_link, header, attributes })?.readUInt32LE(4) ?? null;
}

/** A table of rtnetlink(7). */
export interface Table extends Exchange {
  /** What it holds, for the sentence of an error: `routes`. */
  readonly of: string;
  /** Of the family header that begins every message. */
  readonly header_bytes: number;
}

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
    if (!send(c, fd, frame(table.ask, nlm_f_request | nlm_f_dump, [Buffer.alloc(table.header_bytes)])))
      throw failed();
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

interface NetlinkSpec {
  /** `NETLINK_ROUTE` is 0. */
  readonly protocol: number;
  /** Multicast groups to join, as bits. */
  readonly groups: number;
  /** There is news, or so much at once that the kernel had to drop some. */
  readonly onNews: () => void;
  /** The socket is closed when it aborts. */
  readonly signal: AbortSignal;
}

const address_bytes = 12;
/** What is left after so many comes with the next turn of the loop. */
const reads_per_turn_max = 64;

/** Receives notifications until the signal aborts. Rejects with `DeviceUnreachable` where the kernel or a sandbox has no netlink for us. */
export async function listenNetlink(spec: NetlinkSpec): Promise<void> {
  const c = await libc();
  spec.signal.throwIfAborted();
  const fd = c.socket(af_netlink, sock_raw_nonblock_cloexec, spec.protocol);
  if (fd < 0) throw new DeviceUnreachable(texts.netlink_not_opened(c.errno()));
  if (c.bind(fd, netlinkAddress(spec.groups), address_bytes) !== 0) {
    const code = c.errno();
    c.close(fd);
    throw new DeviceUnreachable(texts.netlink_not_bound(code));
  }
  const room = Buffer.alloc(datagram_bytes_max);
  let open = true;
  const unwatch = c.watch(fd, 'readable', () => {
    const hasNews = readAll(c, fd, room);
    setImmediate(() => {
      if (open && hasNews) spec.onNews();
    });
  });
  const close = (): void => {
    open = false;
    unwatch();
    c.close(fd);
  };
  spec.signal.addEventListener('abort', close, { once: true });
}

/** Empties the socket; whether the kernel had sent anything. */
function readAll(c: Libc, fd: number, room: Buffer): boolean {
  let hasNews = false;
  for (let reads = 0; reads < reads_per_turn_max; reads += 1) {
    const from = netlinkAddress(0);
    const from_bytes = new Uint8Array(new Uint32Array([address_bytes]).buffer);
    if (c.recvfrom(fd, room, room.length, 0, from, from_bytes) < 0) {
      const code = c.errno();
      hasNews ||= code === 'ENOBUFS';
      if (code === 'ENOBUFS' || code === 'EINTR') continue;
      break;
    }
    // Any process may send to us; only what comes from port 0 is the kernel's.
    hasNews ||= from.readUInt32LE(4) === 0;
  }
  return hasNews;
}

/** `sockaddr_nl`; both processors we run on are little-endian. */
function netlinkAddress(groups: number): Buffer {
  const address = Buffer.alloc(address_bytes);
  address.writeUInt16LE(af_netlink, 0);
  address.writeUInt32LE(groups, 8);
  return address;
}

// Frames of netlink and attributes of rtnetlink: bytes in, records out. Nothing here trusts a length.

interface Message {
  readonly type: number;
  readonly flags: number;
  readonly body: Buffer;
}

/** By attribute number. */
export type Attributes = ReadonlyMap<number, Buffer>;

const attribute_header_bytes = 4;
/** The two top bits of an attribute's type are flags. */
const attribute_type_mask = 0x3fff;

/** The messages of one datagram; what is cut off or inconsistent at the end is left out. */
export function readMessages(datagram: Buffer): readonly Message[] {
  const messages: Message[] = [];
  for (let at = 0; at + header_bytes <= datagram.length;) {
    const length = datagram.readUInt32LE(at);
    if (length < header_bytes || at + length > datagram.length) break;
    messages.push({
      type: datagram.readUInt16LE(at + 4),
      flags: datagram.readUInt16LE(at + 6),
      body: datagram.subarray(at + header_bytes, at + length),
    });
    at += aligned(length);
  }
  return messages;
}

/** The attributes that follow a header of `from` bytes. */
export function readAttributes(body: Buffer, from: number): Attributes {
  const attributes = new Map<number, Buffer>();
  for (let at = from; at + attribute_header_bytes <= body.length;) {
    const length = body.readUInt16LE(at);
    if (length < attribute_header_bytes || at + length > body.length) break;
    attributes.set(
      body.readUInt16LE(at + 2) & attribute_type_mask,
      body.subarray(at + attribute_header_bytes, at + length),
    );
    at += aligned(length);
  }
  return attributes;
}

/** A 32-bit attribute; undefined when it is absent or too short. */
export function uint32(attributes: Attributes, type: number): number | undefined {
  const value = attributes.get(type);
  return value && value.length >= 4 ? value.readUInt32LE(0) : undefined;
}

/** Messages and attributes begin at multiples of four. */
export function aligned(bytes: number): number {
  return (bytes + 3) & ~3;
}
