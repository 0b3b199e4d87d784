/** Limits what the connections of an HTTP server of Node.js cost: whatever they send, no turn of the event loop gets long. */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { Portions } from './portions.ts';
import { limitRequests } from './request-limit.ts';

/** To be called before the server listens. `event`: brings the sockets that HTTP is spoken on; `secureConnection` with TLS. */
export function limitConnections(
  server: Server,
  event: 'connection' | 'secureConnection' = 'connection',
): void {
  const portions = new Portions();
  server.on(event, (socket: Socket) => {
    portions.limit(socket);
    limitRequests(socket);
  });
}
