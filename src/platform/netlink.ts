/** A netlink socket (netlink(7)): the kernel's own word on links, addresses and routes, read in the event loop. */
import { DeviceUnreachable } from '../errors.ts';
import { type Libc, libc } from './libc.ts';

export interface NetlinkSpec {
  /** `NETLINK_ROUTE` is 0. */
  readonly protocol: number;
  /** Multicast groups to hear, as bits. */
  readonly groups: number;
  /** One datagram of the kernel; it may hold many messages. */
  readonly onData: (datagram: Buffer) => void;
  /** The kernel had to drop messages, because they came faster than they were read. */
  readonly onOverrun: () => void;
  /** The socket is closed when it aborts. */
  readonly signal: AbortSignal;
}

export interface NetlinkSocket {
  /** Throws `DeviceUnreachable` when the kernel does not take it. */
  readonly send: (message: Buffer) => void;
}

const af_netlink = 16;
const sock_raw_nonblock_cloexec = 3 | 0o4000 | 0o2000000;
const address_bytes = 12;
/** The kernel puts at most 32 KiB into one datagram of a dump. */
const datagram_bytes_max = 65_536;
/** What is left after so many comes with the next turn of the loop. */
const reads_per_turn_max = 64;

/** Opens the socket. Rejects with `DeviceUnreachable` where the kernel or a sandbox has no netlink for us. */
export async function openNetlink(spec: NetlinkSpec): Promise<NetlinkSocket> {
  const c = await libc();
  spec.signal.throwIfAborted();
  const fd = c.socket(af_netlink, sock_raw_nonblock_cloexec, spec.protocol);
  if (fd < 0) throw new DeviceUnreachable(`no netlink socket: ${c.errno()}`);
  if (c.bind(fd, netlinkAddress(spec.groups), address_bytes) !== 0) {
    const code = c.errno();
    c.close(fd);
    throw new DeviceUnreachable(`the netlink socket cannot be bound: ${code}`);
  }
  const room = Buffer.alloc(datagram_bytes_max);
  let open = true;
  const unwatch = c.watch(fd, 'readable', () => {
    const { datagrams, overrun } = readAll(c, fd, room);
    setImmediate(() => {
      if (!open) return;
      if (overrun) spec.onOverrun();
      for (const datagram of datagrams) spec.onData(datagram);
    });
  });
  const close = (): void => {
    open = false;
    unwatch();
    c.close(fd);
  };
  spec.signal.addEventListener('abort', close, { once: true });
  return {
    send(message) {
      if (!open) return;
      if (c.sendto(fd, message, message.length, 0, netlinkAddress(0), address_bytes) >= 0) return;
      throw new DeviceUnreachable(`the kernel does not take a netlink request: ${c.errno()}`);
    },
  };
}

function readAll(c: Libc, fd: number, room: Buffer) {
  const datagrams: Buffer[] = [];
  let overrun = false;
  for (let reads = 0; reads < reads_per_turn_max; reads += 1) {
    const from = netlinkAddress(0);
    const from_bytes = new Uint8Array(new Uint32Array([address_bytes]).buffer);
    const bytes = c.recvfrom(fd, room, room.length, 0, from, from_bytes);
    if (bytes < 0) {
      const code = c.errno();
      overrun ||= code === 'ENOBUFS';
      if (code === 'ENOBUFS' || code === 'EINTR') continue;
      break;
    }
    // Any process may send to us; only what comes from port 0 is the kernel's.
    if (from.readUInt32LE(4) === 0) datagrams.push(Buffer.from(room.subarray(0, bytes)));
  }
  return { datagrams, overrun };
}

/** `sockaddr_nl`; both processors we run on are little-endian. */
function netlinkAddress(groups: number): Buffer {
  const address = Buffer.alloc(address_bytes);
  address.writeUInt16LE(af_netlink, 0);
  address.writeUInt32LE(groups, 8);
  return address;
}
