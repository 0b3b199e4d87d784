/** Many requests in one packet do not hold up the event loop. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { limitRequests } from '../../../../src/platform/http-server/request-limit.ts';

it.each([
  ['whose answers are awaited', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['that Node.js refuses, as they lack the host', 'GET / HTTP/1.1\r\n\r\n'],
  ['that Node.js refuses, as they expect something', 'GET / HTTP/1.1\r\nHost: a\r\nExpect: b\r\n\r\n'],
])('reads no further in a packet of many requests %s', async (_, request) => {
  const server = createServer();
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
