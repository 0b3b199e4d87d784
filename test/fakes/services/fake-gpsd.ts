/** A gpsd that says what the test tells it to, line by line, and misbehaves on command. */
import { createServer, type Server, type Socket } from 'node:net';
import { freePort } from '../../support/ports.ts';

export interface FakeGpsd {
  readonly port: number;
  /** What clients sent. */
  heard: string;
  /** Sent to each client that connects, and with `say` to those that are there. */
  greeting: string;
  say(text: string): void;
  lose(): Promise<void>;
  restore(): Promise<void>;
}

export async function startFakeGpsd(): Promise<FakeGpsd> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
    socket.on('data', (chunk) => {
      gpsd.heard += chunk.toString();
    });
    socket.write(gpsd.greeting);
  });
  const port = await freePort();
  await listen(server, port);
  const gpsd: FakeGpsd = {
    port,
    heard: '',
    greeting: '{"class":"VERSION","release":"3.22"}\r\n',
    say: (text) => {
      for (const socket of sockets) socket.write(text);
    },
    async lose() {
      for (const socket of sockets) socket.destroy();
      if (server.listening) {
        await new Promise((resolve) => {
          server.close(resolve);
        });
      }
    },
    async restore() {
      if (!server.listening) await listen(server, port);
    },
  };
  return gpsd;
}

async function listen(server: Server, port: number): Promise<void> {
  await new Promise<void>((resolve) => {
    server.listen(port, '127.0.0.1', resolve);
  });
}
