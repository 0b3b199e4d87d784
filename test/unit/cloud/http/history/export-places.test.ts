/** An export takes one of two places of its key. Whoever reads it, or does not, the place comes back. */
import { createConnection } from 'node:net';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { sleep } from '../../../../../src/platform/time.ts';
import { patiently } from '../../../../../src/cloud/http/history/export.ts';
import { channels } from '../../../../../src/contract/topics.ts';
import { type ServiceLab, startServiceLab } from '../../../../support/service/service-lab.ts';

const kit_id = '0f8c1a52-6d1e-4b7a-9c3d-1f2e3d4c5b6a';
const path = `/api/kits/${kit_id}/export`;

let lab: ServiceLab;
let key: string;

beforeEach(async () => {
  lab = await startServiceLab(kit_id, { hasHistory: true });
  key = await lab.giveKey();
  await lab.publish(channels.telemetry, { battery: 80 });
});

afterEach(async () => lab.stop());

async function ask(method = 'GET'): Promise<Response> {
  return fetch(`${lab.url}${path}`, { method, headers: { 'X-API-Key': key } });
}

it('answers HEAD without keeping a place', async () => {
  for (let n = 0; n < 3; n += 1) expect((await ask('HEAD')).status).toBe(200);
  const answer = await ask();
  expect(answer.status).toBe(200);
  expect(await answer.text()).toContain('"battery":80');
});

it('frees the places of clients that hang up as soon as they have asked', async () => {
  for (let n = 0; n < 8; n += 1) {
    const { hostname, port } = new URL(lab.url);
    const socket = createConnection({ host: hostname, port: Number(port) });
    await once(socket, 'connect');
    socket.end(`GET ${path} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nX-API-Key: ${key}\r\n\r\n`);
    socket.destroySoon();
    await once(socket, 'close');
  }
  expect((await ask()).status).toBe(200);
});

it('has no limit for silence while a page is read, and its own afterwards', async () => {
  const idle_ms = 100;
  const server = createServer((_, response) => {
    const read = patiently(response, async () => sleep(5 * idle_ms, new AbortController().signal));
    void read.then(() => response.write('page'));
  });
  server.setTimeout(idle_ms);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const at = server.address();
  const client = createConnection({ host: '127.0.0.1', port: typeof at === 'object' && at ? at.port : 0 });
  let text = '';
  client.on('data', (some: Buffer) => (text += some.toString()));
  client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await once(client, 'close');
  server.close();
  expect(text).toContain('page');
});
