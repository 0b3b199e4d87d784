/** Answers that nobody reads: of one key there are a few, so that they do not fill the memory, and other keys are served. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Env } from '../../../../src/service/http/context.ts';
import { limitUntaken, untaken_max } from '../../../../src/service/http/server/untaken.ts';
import { eventually } from '../../../support/eventually.ts';

/** More than the buffers of a connection take. */
const large = 'x'.repeat(8_000_000);

let made: string[] = [];
let server: Server;
const opened: Socket[] = [];
beforeEach(async () => {
  made = [];
  const app = new Hono<Env>();
  app.use(async (c, next) => {
    const key_id = c.req.header('x-api-key') ?? '';
    c.set('principal', { key_id, user_id: 'u', label: 'test', scopes: ['read'], kits: '*' });
    await next();
  });
  app.use(limitUntaken());
  app.get('*', (c) => {
    made.push(`${c.var.principal.key_id} ${c.req.path}`);
    return c.text(c.req.path === '/large' ? large : 'small');
  });
  const listener = getRequestListener(app.fetch, { overrideGlobalObjects: false });
  server = createServer((request, response) => void listener(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(() => {
  for (const socket of opened.splice(0)) socket.destroy();
  server.closeAllConnections();
  server.close();
});

async function ask(key: string, path: string): Promise<Socket> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => undefined);
  opened.push(socket);
  await once(socket, 'connect');
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${key}\r\n\r\n`);
  return socket;
}

it('are made for a key up to a number; the next waits until one is closed, and those of other keys do not', async () => {
  const unread: Socket[] = [];
  for (let n = 0; n < untaken_max; n += 1) unread.push(await ask('a', '/large'));
  await eventually('as many as may be are made', () => made.length === untaken_max);
  const next = await ask('a', '/next');
  const reading = await ask('b', '/small');
  await once(reading, 'data');
  expect(made).not.toContain('a /next');
  unread[0]?.destroy();
  await once(next, 'data');
  expect(made).toContain('a /next');
});

it('give their places back when they are read, however many follow each other', async () => {
  for (let n = 0; n < 3 * untaken_max; n += 1) await once(await ask('a', `/${n}`), 'data');
  expect(made).toHaveLength(3 * untaken_max);
});
