/** Something at the address of a device that is no such device: it serves another protocol, or takes connections and is silent. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { freePort } from '../ports.ts';

export interface ForeignPeer {
  /** Of TCP and UDP on the loopback. */
  readonly port: number;
  /** Path of a local socket that behaves in the same way. */
  readonly path: string;
  stop(): Promise<void>;
}

/** Longer than a frame of any protocol here. */
const greeting = `220 mail.example.com ${'*'.repeat(500)}\r\n`;
const complaint = Buffer.from('500 \u0007\u00FF what\r\n', 'latin1');

/** `dir` holds the local socket. */
export async function startForeignPeer(dir: string, manner: 'rubbish' | 'hangs'): Promise<ForeignPeer> {
  const open = new Set<Socket>();
  const serve = (): Server =>
    createServer((socket) => {
      open.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => open.delete(socket));
      if (manner === 'hangs') return;
      socket.write(greeting);
      socket.on('data', () => socket.write(complaint));
    });
  const [tcp, local, udp] = [serve(), serve(), createSocket('udp4')];
  const port = await freePort();
  const path = join(dir, 'socket');
  tcp.listen(port, '127.0.0.1');
  local.listen(path);
  udp.bind(port, '127.0.0.1');
  await Promise.all([tcp, local, udp].map(async (each) => once(each, 'listening')));
  udp.on('message', (_bytes, { port: from, address }) => {
    if (manner === 'rubbish') udp.send(complaint, from, address);
  });
  return {
    port,
    path,
    async stop() {
      for (const socket of open) socket.destroy();
      const closed = [tcp, local, udp].map(async (each) => once(each, 'close'));
      for (const each of [tcp, local, udp]) each.close();
      await Promise.all(closed);
    },
  };
}
