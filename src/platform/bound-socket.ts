/**
 * Sockets that send and hear by one given network device, whatever the routing table prefers: UDP, TCP and ICMP echo.
 * The way is chosen with SO_BINDTODEVICE; a source address alone does not choose it.
 */
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { type Binding, openBound, sock_dgram } from './bound-fd.ts';
import { libc } from './libc.ts';

export { reasonOf } from './bound-fd.ts';
export { type EchoReply, type EchoSocket, openIcmp } from './bound-icmp.ts';
export { connectTcp, knockTcp } from './bound-tcp.ts';
export { type Neighbour, readNeighbours } from './neighbours.ts';
export { listenNetlink } from './netlink.ts';
export { dumpTable } from './netlink-dump.ts';
export { type Attributes, aligned, readAttributes, uint32 } from './netlink-message.ts';
export { canonicalIp, familyOf, type Family, ipv6Text } from './socket-address.ts';

/**
 * A UDP socket that is ready to send; close it when done. `device` undefined: the routing table chooses. Rejects with
 * `DeviceUnreachable` when there is no such device, with `DeviceRejected` when a right is missing.
 */
export async function openUdp(binding: Binding): Promise<UdpSocket> {
  const c = await libc();
  const fd = openBound(c, binding, { type: sock_dgram, protocol: 0 });
  const socket = createSocket(binding.family === 4 ? 'udp4' : 'udp6');
  // Adopting a descriptor needs no look-up, so the socket is listening when this returns.
  socket.bind({ fd });
  return socket;
}

/** The kernel's index of the device with this name now, or null: what is plugged in anew gets another one. */
export async function deviceIndex(device: string): Promise<number | null> {
  const index = (await libc()).if_nametoindex(device);
  return index === 0 ? null : index;
}
