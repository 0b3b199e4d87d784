/** Pages of other origins: those that are configured may use the API with a key, the others may not. */
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { channels } from '../../../../src/contract/topics.ts';
import { kit_id, samples } from '../../../support/contract-samples.ts';
import { eventually } from '../../../support/eventually.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';

const app = 'https://app.example.com';
/** As Capacitor has it on iOS. */
const web_view = 'capacitor://localhost';
const stranger = 'https://evil.example';

let lab: ServiceLab;
const sockets: WebSocket[] = [];
beforeEach(async () => {
  lab = await startServiceLab(kit_id, { cors_origins: [app, web_view] });
  await lab.publish(channels.state, samples['kitState'] ?? {});
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.terminate();
  await lab.stop();
});

const preflight = async (origin: string, path = '/api/kits') =>
  fetch(lab.url + path, {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'x-api-key,content-type',
    },
  });

function connect(origin: string, headers: Record<string, string>) {
  const socket = new WebSocket(`${lab.url.replace('http', 'ws')}/api/ws`, {
    headers: { origin, 'sec-fetch-site': 'cross-site', ...headers },
  });
  socket.on('error', () => undefined);
  sockets.push(socket);
  return socket;
}

describe('CORS', () => {
  it.each([app, web_view])(
    'answers the preflight of the configured origin %s without a key',
    async (origin) => {
      const { status, headers } = await preflight(origin);
      expect(status).toBe(204);
      expect(headers.get('access-control-allow-origin')).toBe(origin);
      expect(headers.get('access-control-allow-methods')).toContain('POST');
      expect(headers.get('access-control-allow-headers')).toContain('X-API-Key');
      expect(headers.get('access-control-max-age')).toBe('600');
      expect(headers.get('access-control-allow-credentials')).toBeNull();
    },
  );

  it('answers OPTIONS without a key and without an allowed origin with the methods of the path, and nothing of CORS', async () => {
    const assets = `/api/kits/${kit_id}/assets`;
    for (const origin of [stranger, 'null', '']) {
      const { status, headers } = await preflight(origin, assets);
      expect([status, headers.get('allow')]).toEqual([204, 'GET, POST, HEAD, OPTIONS']);
      expect([...headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual([]);
    }
    expect((await preflight(stranger, '/api/nothing')).status).toBe(404);
    await lab.stop();
    lab = await startServiceLab(kit_id, {});
    const { status, headers } = await preflight(app, assets);
    expect([status, headers.get('access-control-allow-origin')]).toEqual([204, null]);
    expect((await fetch(lab.url + assets, { method: 'PUT' })).status).toBe(401);
  });

  it('allows nothing to other origins', async () => {
    const read = await fetch(`${lab.url}/api/kits`, { headers: { origin: stranger, 'x-api-key': lab.key } });
    expect(read.headers.get('access-control-allow-origin')).toBeNull();
  });

  it('lets a page of a configured origin read the response and its headers, also that of an error', async () => {
    const read = await fetch(`${lab.url}/api/kits`, { headers: { origin: app, 'x-api-key': lab.key } });
    expect([read.status, read.headers.get('access-control-allow-origin')]).toEqual([200, app]);
    expect(read.headers.get('access-control-expose-headers')).toContain('Location');
    expect(read.headers.get('vary')).toContain('Origin');
    const refused = await fetch(`${lab.url}/api/kits`, { headers: { origin: app, 'x-api-key': 'wrong' } });
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([401, app]);
  });

  it('never accepts the cookie of the console from another origin', async () => {
    const opened = await fetch(`${lab.url}/api/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: lab.url },
      body: JSON.stringify({ api_key: lab.key }),
    });
    const [cookie = ''] = (opened.headers.get('set-cookie') ?? '').split(';');
    const foreign = { origin: app, 'sec-fetch-site': 'same-site', cookie };
    expect((await fetch(`${lab.url}/api/kits`, { headers: foreign })).status).toBe(403);
    const socket = connect(app, { cookie });
    await once(socket, 'open');
    const closed = once(socket, 'close');
    socket.send(JSON.stringify({ type: 'subscribe', summaries: true }));
    expect((await closed)[0]).toBe(4401);
  });

  it('opens a WebSocket for a page of a configured origin with a valid key', async () => {
    const socket = connect(app, {});
    const frames: string[] = [];
    socket.on('message', (raw: Buffer) => frames.push(raw.toString('utf8')));
    await once(socket, 'open');
    socket.send(JSON.stringify({ type: 'auth', api_key: lab.key }));
    socket.send(JSON.stringify({ type: 'subscribe', summaries: true }));
    await eventually('the list', () => frames.some((text) => text.includes('"summaries"')));
    const [, response] = (await once(connect(stranger, {}), 'unexpected-response')) as [
      unknown,
      { statusCode: number },
    ];
    expect(response.statusCode).toBe(403);
  });
});
