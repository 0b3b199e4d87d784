/** The few rules of HTTP that people and tools of this machine meet. */
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { answerBy, json, NotAnswered, text } from '../../../../src/kit/local/exchange.ts';
import { messageOf } from '../../../../src/platform/errors.ts';

const server = createServer(
  answerBy(
    {
      'GET /things': ({ query }) => json({ kind: query.get('kind') }),
      'GET /things/:id': ({ id }) => text(id),
      'POST /things': async ({ body }) => text(`${(await body()).length}`, 201),
      'GET /broken': () => {
        throw new TypeError('it broke');
      },
      'GET /pieces': () => ({ content_type: 'text/plain', content: (response) => response.end('piece') }),
    },
    (error) => text(messageOf(error), error instanceof NotAnswered ? error.status : 500),
  ),
);
let url = '';
beforeAll(async () => {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());

async function ask(path: string, init?: RequestInit): Promise<readonly [number, string]> {
  const answer = await fetch(`${url}${path}`, init);
  return [answer.status, await answer.text()];
}

test('a route is found by method and path, with its query and the last part of its path', async () => {
  expect(await ask('/things?kind=a%20b')).toEqual([200, '{"kind":"a b"}']);
  expect(await ask('/things/a%2Fb%20c')).toEqual([200, 'a/b c']);
  expect(await ask('/things', { method: 'POST', body: 'four' })).toEqual([201, '4']);
  expect(await ask('/pieces')).toEqual([200, 'piece']);
});

test('an unknown route is answered with its method and path', async () => {
  expect(await ask('/nothing?x=1')).toEqual([404, 'there is no GET /nothing']);
  expect(await ask('/things/1', { method: 'POST' })).toEqual([404, 'there is no POST /things/1']);
  expect(await ask('/things/1/2')).toEqual([404, 'there is no GET /things/1/2']);
});

test('an address that is not UTF-8, a failing route and a body that is too large get an error response', async () => {
  expect(await ask('/things/%ff')).toEqual([400, 'the address cannot be read: URI malformed']);
  expect(await ask('/broken')).toEqual([500, 'it broke']);
  expect(await ask('/things', { method: 'POST', body: 'x'.repeat(1_000_001) })).toEqual([
    413,
    'a body has at most 1000000 bytes',
  ]);
});

test('a client that disconnects in the middle of its body affects no other request', async () => {
  const asker = request(`${url}/things`, { method: 'POST', headers: { 'content-length': 100 } });
  asker.on('error', () => undefined);
  asker.write('half');
  await new Promise<void>((resolve) => void asker.once('socket', (s) => void s.once('connect', resolve)));
  asker.destroy();
  expect(await ask('/things/1')).toEqual([200, '1']);
});
