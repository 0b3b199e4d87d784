/** Whatever connections send, no turn of the event loop gets long: HTTP servers get it in small shares. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { limitConnections } from '../../../src/platform/limit-connections.ts';
import { turn } from '../../../src/platform/time.ts';
import { eventually } from '../../support/eventually.ts';

/** A server whose connections are limited, its sockets, and clients connected to it. */
async function scene(
  count: number,
  listener: RequestListener,
): Promise<{ clients: readonly Socket[]; sockets: readonly Socket[] }> {
  const sockets: Socket[] = [];
  const server = createServer({ keepAliveTimeout: 50, keepAliveTimeoutBuffer: 1 }, listener);
  limitConnections(server);
  server.on('connection', (socket) => sockets.push(socket));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  // Reset where the server closes it with bytes unread.
  const clients = Array.from({ length: count }, () =>
    connect({ host: '127.0.0.1', port })
      .on('error', () => undefined)
      .resume(),
  );
  onTestFinished(() => {
    for (const socket of clients) socket.destroy();
    server.closeAllConnections();
    server.close();
  });
  await eventually('all are connected', () => sockets.length === count);
  return { clients, sockets };
}

const post = (bytes: number): string => `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes}\r\n\r\n`;

it('comes whole and in order from all, little of it in one turn', async () => {
  let [in_this_turn, longest] = [0, 0];
  const received: Buffer[] = [];
  const { clients } = await scene(20, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (bytes: Buffer) => {
      if (in_this_turn === 0) setImmediate(() => (in_this_turn = 0));
      in_this_turn += bytes.length;
      longest = Math.max(longest, in_this_turn);
      chunks.push(bytes);
    });
    request.on('end', () => received.push(Buffer.concat(chunks)));
    request.on('end', () => response.end());
  });
  const sent = Buffer.from(Array.from({ length: 60_000 }, (_, n) => n % 251));
  for (const client of clients) {
    client.write(post(sent.length));
    client.end(sent);
  }
  await eventually('all have ended', () => received.length === 20);
  expect(received.every((body) => body.equals(sent))).toBe(true);
  // What is left of one turn and the next one may fall between two counts.
  expect(longest).toBeLessThanOrEqual(2 * 4_200);
});

it('is not read from the system while its reader pauses', async () => {
  const all = 16 * 1024 * 1024;
  let left = all;
  let resume = (): unknown => undefined;
  const { clients, sockets } = await scene(1, (request) => {
    request.on('data', (bytes: Buffer) => (left -= bytes.length)).pause();
    resume = () => request.resume();
  });
  const [[client], [socket]] = [clients, sockets];
  client?.write(post(all));
  client?.write(Buffer.alloc(all));
  await eventually('some of it came', () => (socket?.bytesRead ?? 0) > 1_000);
  for (let n = 0; n < 50; n += 1) await turn();
  expect(socket?.bytesRead).toBeLessThan(256 * 1024);
  resume();
  await eventually('the rest comes', () => left === 0);
});

it('serves several requests on one connection, and closes it once it is idle', async () => {
  const seen: string[] = [];
  const { clients } = await scene(1, (request, response) => {
    seen.push(`${request.socket.remoteAddress} ${request.socket.remotePort}`);
    response.end();
  });
  const [client] = clients;
  const from = `127.0.0.1 ${client?.localPort}`;
  client?.once('data', () => client.write(post(0))).write(post(0));
  await once(client ?? process, 'close');
  expect(seen).toEqual([from, from]);
});

it.each([
  ['which the server closes', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['that Node.js refuses, as they lack the host', 'GET / HTTP/1.1\r\n\r\n'],
])('reads no further in a packet of many requests %s', async (_, request) => {
  let begun = 0;
  const count = (): void => void (begun += 1);
  subscribe('http.server.request.start', count);
  onTestFinished(() => void unsubscribe('http.server.request.start', count));
  const { clients } = await scene(1, ({ socket }) => socket.destroy());
  const [client] = clients;
  client?.write(request.repeat(2_000));
  await once(client ?? process, 'close');
  expect(begun).toBeLessThan(300);
});
