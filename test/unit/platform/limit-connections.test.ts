/** Whatever connections send, no turn of the event loop gets long: bytes come in portions, and requests of one packet have a limit. */
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { limitRequests, Portions } from '../../../src/platform/limit-connections.ts';
import { turn } from '../../../src/platform/time.ts';
import { eventually } from '../../support/eventually.ts';

/** A server whose sockets are limited, and clients connected to it. */
async function scene(count: number): Promise<{ clients: readonly Socket[]; sockets: readonly Socket[] }> {
  const portions = new Portions();
  const sockets: Socket[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    portions.limit(socket);
    sockets.push(socket);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const clients = Array.from({ length: count }, () => connect({ host: '127.0.0.1', port }));
  onTestFinished(() => {
    for (const socket of [...clients, ...sockets]) socket.destroy();
    server.close();
  });
  await eventually('all are connected', () => sockets.length === count);
  return { clients, sockets };
}

it('comes whole and in order from all, little of it in one turn', async () => {
  const { clients, sockets } = await scene(20);
  let [in_this_turn, longest, ended] = [0, 0, 0];
  const received = sockets.map(() => [] as Buffer[]);
  for (const [index, socket] of sockets.entries()) {
    socket.on('data', (bytes: Buffer) => {
      if (in_this_turn === 0) setImmediate(() => (in_this_turn = 0));
      in_this_turn += bytes.length;
      longest = Math.max(longest, in_this_turn);
      received[index]?.push(bytes);
    });
    socket.on('end', () => (ended += 1));
  }
  const sent = Buffer.from(Array.from({ length: 60_000 }, (_, n) => n % 251));
  for (const client of clients) client.end(sent);
  await eventually('all have ended', () => ended === 20);
  expect(received.every((chunks) => Buffer.concat(chunks).equals(sent))).toBe(true);
  // What is left of one turn and the next one may fall between two counts.
  expect(longest).toBeLessThanOrEqual(2 * 16_384);
});

it('is not read from the system while its reader pauses', async () => {
  const { clients, sockets } = await scene(1);
  const [[client], [socket]] = [clients, sockets];
  socket?.once('data', () => socket.pause());
  client?.write(Buffer.alloc(16 * 1024 * 1024));
  await eventually('some of it came', () => (socket?.bytesRead ?? 0) > 0);
  for (let n = 0; n < 50; n += 1) await turn();
  expect(socket?.bytesRead).toBeLessThan(256 * 1024);
  let left = 0;
  socket?.on('data', (bytes: Buffer) => (left += bytes.length)).resume();
  await eventually('the rest comes', () => left > 15 * 1024 * 1024);
});

it('is forgotten with its connection', async () => {
  const { clients, sockets } = await scene(2);
  let seen = 0;
  for (const socket of sockets) {
    socket.on('data', (bytes: Buffer) => {
      seen += bytes.length;
      if (bytes.includes(1)) socket.destroy();
    });
  }
  clients[0]?.on('error', () => undefined).write(Buffer.alloc(60_000, 1));
  clients[1]?.write(Buffer.alloc(60_000));
  await eventually('the other one is read', () => seen >= 60_000);
  expect(seen).toBeLessThan(120_000);
});

it.each([
  ['whose answers are awaited', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['that Node.js refuses, as they lack the host', 'GET / HTTP/1.1\r\n\r\n'],
  ['that Node.js refuses, as they expect something', 'GET / HTTP/1.1\r\nHost: a\r\nExpect: b\r\n\r\n'],
])('reads no further in a packet of many requests %s', async (_, request) => {
  const server = createHttpServer();
  let begun = 0;
  server.on('connection', (socket: Socket & { parser: { onIncoming: (...of: unknown[]) => number } }) => {
    const { onIncoming } = socket.parser;
    socket.parser.onIncoming = (...of) => {
      begun += 1;
      return onIncoming(...of);
    };
    limitRequests(socket);
  });
  onTestFinished(() => void server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const socket = connect({ host: '127.0.0.1', port });
  // Reset, as it was closed with bytes unread.
  socket.on('error', () => undefined).resume();
  const closed = new Promise((resolve) => {
    socket.once('close', resolve);
  });
  await once(socket, 'connect');
  socket.write(request.repeat(1_000));
  await closed;
  expect(begun).toBe(9);
});
