/** One request to rtnetlink(7) with its answer. */
import { type Libc } from './libc.ts';
import { aligned, readMessages } from './netlink-message.ts';

const af_netlink = 16;
const sock_raw_nonblock_cloexec = 3 | 0o4000 | 0o2000000;
const netlink_route = 0;
const nlm_f_request = 0x1;
const header_bytes = 16;
const answer_bytes_max = 32_768;

interface Request {
  /** Message types: `RTM_GETROUTE`, `RTM_NEWROUTE`. */
  readonly ask: number;
  readonly answer: number;
  /** The header of the family. */
  readonly header: Buffer;
  readonly attributes: readonly Buffer[];
}

/** The body of the answer, on a separate socket; null for a refusal, which is how the kernel reports that there is none. */
export function askNetlink(c: Libc, { ask, answer, header, attributes }: Request): Buffer | null {
  const fd = c.socket(af_netlink, sock_raw_nonblock_cloexec, netlink_route);
  if (fd < 0) return null;
  try {
    const whole = Buffer.concat([Buffer.alloc(header_bytes), header, ...attributes]);
    whole.writeUInt32LE(whole.length, 0);
    whole.writeUInt16LE(ask, 4);
    whole.writeUInt16LE(nlm_f_request, 6);
    whole.writeUInt32LE(1, 8);
    if (c.sendto(fd, whole, whole.length, 0, null, 0) < 0) return null;
    const room = Buffer.alloc(answer_bytes_max);
    const length = c.recvfrom(fd, room, room.length, 0, null, null);
    const messages = length < 0 ? [] : readMessages(room.subarray(0, length));
    return messages.find(({ type }) => type === answer)?.body ?? null;
  } finally {
    c.close(fd);
  }
}

/** An attribute of a request. */
export function attribute(type: number, value: Uint8Array): Buffer {
  const bytes = Buffer.alloc(aligned(4 + value.length));
  bytes.writeUInt16LE(4 + value.length, 0);
  bytes.writeUInt16LE(type, 2);
  bytes.set(value, 4);
  return bytes;
}

const message = { get_link: 18, new_link: 16 } as const;
const interface_header_bytes = 16;
const ifla_alt_ifname = 53;

const flags_at = 8;
const iff_running = 0x40;

/** Whether the interface can carry packets: it is up and, where it has a carrier, has one (RFC 2863 `ifOperStatus`). */
export function isRunning(c: Libc, ifindex: number): boolean {
  const header = Buffer.alloc(interface_header_bytes);
  header.writeUInt32LE(ifindex, 4);
  const found = askNetlink(c, { ask: message.get_link, answer: message.new_link, header, attributes: [] });
  return found !== null && (found.readUInt32LE(flags_at) & iff_running) !== 0;
}

/** The index of the interface with this name or alternative name (ip-link(8), `altname`); null: there is none. */
export function interfaceNamed(c: Libc, name: string): number | null {
  const found = askNetlink(c, {
    ask: message.get_link,
    answer: message.new_link,
    header: Buffer.alloc(interface_header_bytes),
    attributes: [attribute(ifla_alt_ifname, Buffer.from(`${name}\0`))],
  });
  return found?.readUInt32LE(4) ?? null;
}
