/** Reads a connection one chunk in a turn of the event loop, so that a flood on it leaves time for the other sockets. */
import type { Socket } from 'node:net';

/** Calls `push` with each chunk until the socket ends. */
export function readPaced(socket: Socket, push: (chunk: Uint8Array) => void): void {
  socket.on('data', (chunk) => {
    push(chunk);
    if (socket.destroyed) return;
    socket.pause();
    setImmediate(() => socket.resume());
  });
}
