/** Free loopback ports for simulated devices, so that several demos can run at a time. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { loopback } from './embedded-broker.ts';

export async function freeTcpPort(): Promise<number> {
  const server = createServer().listen(0, loopback);
  await once(server, 'listening');
  const at = server.address();
  server.close();
  return typeof at === 'object' && at !== null ? at.port : 0;
}

export async function freeUdpPort(): Promise<number> {
  const socket = createSocket('udp4').bind(0, loopback);
  await once(socket, 'listening');
  const { port } = socket.address();
  socket.close();
  return port;
}
