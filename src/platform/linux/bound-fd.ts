/** Opens socket descriptors bound to one network device, and describes their errors. */
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { DeviceRejected, DeviceUnreachable } from '../errors.ts';
import { texts } from '../texts.ts';
import { type Libc, libc } from './libc.ts';
import { af_inet, af_inet6, type Family } from './socket-address.ts';
import { sol_socket } from './socket-options.ts';

const so_bindtodevice = 25;
const sock_nonblock = 0o4000;
const sock_cloexec = 0o2000000;
export const sock_stream = 1;
export const sock_dgram = 2;
export const sock_raw = 3;

export interface Binding {
  /** Interface name; undefined: the routing table chooses. */
  readonly device?: string | undefined;
  readonly family: Family;
}

interface Kind {
  readonly type: number;
  readonly protocol: number;
}

/**
 * Opens a non-blocking socket and ties it to the device (SO_BINDTODEVICE: the source address alone does not choose the
 * way out). Throws `DeviceUnreachable` when the device does not exist, `DeviceRejected` without the permission.
 */
export function openBound(libc: Libc, { device, family }: Binding, { type, protocol }: Kind): number {
  const domain = family === 4 ? af_inet : af_inet6;
  const fd = libc.socket(domain, type | sock_nonblock | sock_cloexec, protocol);
  if (fd < 0) throw refusal(libc.errno(), texts.ip_socket(family));
  if (device === undefined || tie(libc, fd, device)) return fd;
  const code = libc.errno();
  libc.close(fd);
  throw bindingRefusal(code, device);
}

function tie(libc: Libc, fd: number, device: string): boolean {
  const name = Buffer.from(`${device}\0`);
  return libc.setsockopt(fd, sol_socket, so_bindtodevice, name, name.length) === 0;
}

/** Ties a connected socket to the device, where the kernel allows it: its packets leave by no other one, whatever the routes become. */
export async function bindConnected(fd: number, device: string): Promise<void> {
  tie(await libc(), fd, device);
}

function bindingRefusal(code: string, device: string): Error {
  const cause = Object.assign(new Error(`SO_BINDTODEVICE: ${code}`), { code });
  if (code === 'EPERM') {
    return new DeviceRejected(texts.bind_needs_raw(device), { cause });
  }
  if (code === 'ENODEV') return new DeviceUnreachable(texts.no_device(device), { cause });
  return new DeviceUnreachable(texts.bind_failed(device, code), { cause });
}

function refusal(code: string, what: string): Error {
  const cause = Object.assign(new Error(`socket: ${code}`), { code });
  if (code === 'EACCES' || code === 'EPERM') return new DeviceRejected(texts.not_allowed(what), { cause });
  return new DeviceUnreachable(texts.not_opened(what, reasonOf(code)), { cause });
}

/** What a technician understands of an error's code; the code itself when it is a rare one. */
export function reasonOf(code: string): string {
  return texts.socket_reasons[code] ?? code;
}

/**
 * A UDP socket that is ready to send; close it when done. `device` undefined: the routing table chooses. Rejects with
 * `DeviceUnreachable` when the device does not exist, with `DeviceRejected` without the permission.
 */
export async function openUdp(binding: Binding): Promise<UdpSocket> {
  const c = await libc();
  const fd = openBound(c, binding, { type: sock_dgram, protocol: 0 });
  const socket = createSocket(binding.family === 4 ? 'udp4' : 'udp6');
  // Adopting a descriptor needs no look-up, so the socket is listening when this returns.
  socket.bind({ fd });
  return socket;
}

/** `IFNAMSIZ`, with the zero at its end. */
const ifname_bytes = 16;

/** The name of the device with this index now, or null. */
export async function deviceName(ifindex: number): Promise<string | null> {
  const name = Buffer.alloc(ifname_bytes);
  if (!(await libc()).if_indextoname(ifindex, name)) return null;
  return name.toString('utf8', 0, name.indexOf(0));
}

/** The kernel's index of the device with this name now, or null: a device that is plugged in again gets another one. */
export async function deviceIndex(device: string): Promise<number | null> {
  const index = (await libc()).if_nametoindex(device);
  return index === 0 ? null : index;
}
