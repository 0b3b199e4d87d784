/** UDP sockets that send and receive by one given network device, whatever the routing table prefers. */
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { type Binding, openBound, sock_dgram } from './bound-fd.ts';
import { libc } from './libc.ts';

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
