/** Receives the kernel's notifications of links, addresses and routes on a netlink socket (netlink(7)), read in the event loop. */
import { DeviceUnreachable } from '../errors.ts';
import { texts } from '../texts.ts';
import { type Libc, libc } from './libc.ts';

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

const af_netlink = 16;
const sock_raw_nonblock_cloexec = 3 | 0o4000 | 0o2000000;
const address_bytes = 12;
/** The kernel puts at most 32 KiB into one datagram of a dump. */
const datagram_bytes_max = 65_536;
/** What is left after so many comes with the next turn of the loop. */
const reads_per_turn_max = 64;

/** Listens until the signal aborts. Rejects with `DeviceUnreachable` where the kernel or a sandbox has no netlink for us. */
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
