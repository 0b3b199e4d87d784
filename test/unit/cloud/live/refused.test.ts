/** Handshakes of WebSockets that are refused: clients are told why, and when to come again. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { texts } from '../../../../src/cloud/texts.ts';
import { StorageUnavailable } from '../../../../src/platform/errors.ts';
import { kit_id } from '../../../support/contract-samples.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';

const wrong_key = `kc_000000000000_${'A'.repeat(32)}`;
let lab: ServiceLab;
const sockets: WebSocket[] = [];
beforeEach(async () => {
  lab = await startServiceLab(kit_id, { socket_limits: { sockets_per_key: 1, kits_per_socket: 64 } });
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.terminate();
  await lab.stop();
});

function connect(headers: Readonly<Record<string, string>>, path = '/api/ws'): WebSocket {
  const socket = new WebSocket(lab.url.replace('http', 'ws') + path, { headers });
  socket.on('error', () => undefined);
  sockets.push(socket);
  return socket;
}

async function refusal(headers: Readonly<Record<string, string>>, path?: string) {
  const [, response] = (await once(connect(headers, path), 'unexpected-response')) as [
    unknown,
    IncomingMessage,
  ];
  const body: unknown = await json(response);
  return { status: response.statusCode, headers: response.headers, body };
}

it.each([
  ['a wrong key', 401, texts.no_valid_key, { 'x-api-key': wrong_key }],
  [
    'a page of another origin',
    403,
    texts.foreign_origin({ origin: 'http://evil.example', host: 'kit.local' }),
    { origin: 'http://evil.example', host: 'kit.local' },
  ],
  ['a host name that is not served', 421, texts.host_not_served('evil.example'), { host: 'evil.example' }],
])('says why to %s', async (_, status, detail, headers) => {
  const refused = await refusal(headers);
  expect(refused).toMatchObject({
    status,
    headers: { 'content-type': 'application/problem+json', connection: 'close' },
    body: { status, detail },
  });
  expect(refused.headers['www-authenticate']).toBe(status === 401 ? 'ApiKey' : undefined);
});

it('names the kit that does not exist, and the scope that the key lacks', async () => {
  const none = '11111111-1111-4111-8111-111111111111';
  const all = await lab.giveKey({ kits: '*' });
  expect((await refusal({ 'x-api-key': all }, `/api/kits/${none}/ws`)).body).toMatchObject({
    status: 404,
    detail: texts.no_kit(none),
  });
  const blind = await lab.giveKey({ scopes: ['commands'] });
  expect((await refusal({ 'x-api-key': blind })).body).toMatchObject({
    status: 403,
    detail: texts.no_scope('read'),
  });
});

it('says when another socket of the key may be opened', async () => {
  await once(connect({ 'x-api-key': lab.key }), 'open');
  expect(await refusal({ 'x-api-key': lab.key })).toMatchObject({
    status: 429,
    headers: { 'retry-after': '5' },
    body: { detail: texts.too_many_sockets },
  });
});

it('says that the database is away, and logs what is a fault of the service', async () => {
  const all = await lab.giveKey({ kits: '*' });
  lab.store.kit = async () => Promise.reject(new StorageUnavailable('away'));
  const path = `/api/kits/${kit_id}/ws`;
  expect(await refusal({ 'x-api-key': all }, path)).toMatchObject({
    status: 503,
    headers: { 'retry-after': '5' },
    body: { detail: texts.database_silent },
  });
  lab.store.kit = async () => Promise.reject(new TypeError('broken'));
  const { status, body } = await refusal({ 'x-api-key': all }, `${path}?x=1`);
  const { instance } = body as { instance: string };
  expect([status, body]).toEqual([500, expect.objectContaining({ title: 'Internal error' })]);
  const line = lab.log.lines.find(({ sentence }) => sentence === texts.log_internal_error);
  expect(line?.facts).toMatchObject({ request: instance, path });
});
