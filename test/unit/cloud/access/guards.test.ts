/** What stands between a stranger and the service: sessions, origins, host names, methods, and requests that come twice. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { JsonObject } from '../../../../src/contract/json.ts';
import { channels } from '../../../../src/contract/topics.ts';
import { Gate } from '../../../../src/cloud/access/gate.ts';
import { KeyRing } from '../../../../src/cloud/access/keys.ts';
import { RequestProblem } from '../../../../src/cloud/api/problem.ts';
import { scopes } from '../../../../src/cloud/scopes.ts';
import { asset_id, kit_id, samples } from '../../../support/contract-samples.ts';
import { eventually } from '../../../support/eventually.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';
import { texts } from '../../../../src/cloud/texts.ts';

let lab: ServiceLab;
beforeEach(async () => {
  lab = await startServiceLab(kit_id, {
    hosts: ['kit.example.com'],
    media_origins: ['http://10.0.0.1:8889'],
  });
  await lab.publish(channels.state, samples['kitState'] ?? {});
  await lab.publish(channels.asset(asset_id), samples['announcement'] ?? {});
  await lab.publish(channels.commands(asset_id), samples['commandList'] ?? {});
});
afterEach(async () => lab.stop());

const kit = `/api/kits/${kit_id}`;
const order = `${kit}/assets/${asset_id}/commands/goto_waypoint`;
const payload = samples['taskDispatch']?.['payload'] ?? {};
const holding = (part: string): unknown => expect.stringContaining(part);
const json = { 'content-type': 'application/json' };

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** With every header as it is given; `fetch` keeps some of them to itself. */
async function ask(
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body = '',
): Promise<Answer> {
  const asked = request(lab.url + path, { method, headers, agent: false });
  asked.end(body);
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  const said = await text(response);
  const isJson = response.headers['content-type']?.includes('json') === true && said !== '';
  const status = response.statusCode ?? 0;
  return {
    status,
    headers: response.headers,
    text: said,
    body: isJson ? (JSON.parse(said) as Answer['body']) : {},
  };
}

const key = (): Record<string, string> => ({ 'x-api-key': lab.key });

async function openSession(api_key = lab.key): Promise<string> {
  const { status, headers } = await ask('POST', '/api/session', json, JSON.stringify({ api_key }));
  expect(status).toBe(204);
  return headers['set-cookie']?.[0] ?? '';
}

describe('the session of the page', () => {
  it('begins with a key, is a cookie that no script reads, and ends', async () => {
    const cookie = await openSession();
    expect(cookie).toMatch(/^kit_session=[\w-]{43}; Max-Age=43200; Path=\/; HttpOnly; SameSite=Strict$/u);
    expect(cookie).not.toContain(lab.key);
    const page = { cookie: cookie.split(';')[0] ?? '', 'x-kit-page': '1', ...json, origin: lab.url };
    expect((await ask('GET', '/api/session', page)).body).toEqual({
      kits: [kit_id],
      scopes: [...scopes],
    });
    expect((await ask('DELETE', '/api/session', page)).status).toBe(204);
    expect((await ask('GET', '/api/session', page)).status).toBe(401);
  });

  it('ends when the page begins another one with it', async () => {
    const page = {
      cookie: (await openSession()).split(';')[0] ?? '',
      'x-kit-page': '1',
      ...json,
      origin: lab.url,
    };
    const again = await ask('POST', '/api/session', page, JSON.stringify({ api_key: lab.key }));
    expect(again.status).toBe(204);
    expect((await ask('GET', '/api/session', page)).status).toBe(401);
  });

  it.each([
    ['https', true],
    ['HTTPS', true],
    ['https, http', true],
    ['https,http,http', true],
    ['http', false],
    ['http, https', false],
    ['', false],
  ])(
    'is for TLS only where the browser itself came by TLS: x-forwarded-proto "%s"',
    async (scheme, isSecure) => {
      const headers = { ...json, 'x-forwarded-proto': scheme };
      const { headers: answered } = await ask(
        'POST',
        '/api/session',
        headers,
        JSON.stringify({ api_key: lab.key }),
      );
      expect(/; Secure(?:;|$)/u.test(String(answered['set-cookie']))).toBe(isSecure);
    },
  );

  it('does not begin with a wrong key, nor for a page of another origin', async () => {
    const wrong = JSON.stringify({ api_key: `kc_000000000000_${'A'.repeat(32)}` });
    expect((await ask('POST', '/api/session', json, wrong)).status).toBe(401);
    const right = JSON.stringify({ api_key: lab.key });
    const evil = { ...json, origin: 'http://evil.example' };
    expect((await ask('POST', '/api/session', evil, right)).status).toBe(403);
  });

  it.each([
    ['without the header of the page', { 'x-kit-page': '' }],
    ['of another origin', { origin: 'http://127.0.0.1:1' }],
    ['of another site on this host', { 'sec-fetch-site': 'same-site' }],
    ['that is no JSON', { 'content-type': 'text/plain' }],
  ])('lets nothing be changed by a request %s', async (_, wrong) => {
    const cookie = (await openSession()).split(';')[0] ?? '';
    const headers = { cookie, 'x-kit-page': '1', origin: lab.url, 'sec-fetch-site': 'same-origin', ...json };
    const body = JSON.stringify({ payload });
    expect((await ask('POST', order, headers, body)).status).toBe(202);
    expect([403, 415]).toContain((await ask('POST', order, { ...headers, ...wrong }, body)).status);
    expect(lab.dispatched).toHaveLength(1);
  });

  it('ends with its key, and so does what is open', async () => {
    const api_key = await lab.giveKey();
    const cookie = (await openSession(api_key)).split(';')[0] ?? '';
    const headers = { cookie, origin: lab.url };
    const socket = new WebSocket(`${lab.url.replace('http', 'ws')}${kit}/ws`, ['kit.v1'], { headers });
    await once(socket, 'open');
    await lab.revoke(api_key);
    const [code] = (await once(socket, 'close')) as [number];
    expect(code).toBe(4401);
    expect((await ask('GET', '/api/kits', { cookie })).status).toBe(401);
  });

  it('ends while the body of its request is still coming, which is then not carried out', async () => {
    const api_key = await lab.giveKey();
    const body = JSON.stringify({ payload });
    const begun = async (headers: Record<string, string>): Promise<() => Promise<number>> => {
      const sent = { ...json, ...headers, 'content-length': body.length, expect: '100-continue' };
      const asked = request(lab.url + order, { method: 'POST', headers: sent, agent: false });
      asked.flushHeaders();
      await once(asked, 'continue');
      return async () => {
        asked.end(body);
        const [response] = (await once(asked, 'response')) as [IncomingMessage];
        response.resume();
        return response.statusCode ?? 0;
      };
    };
    const kept = await begun(key());
    const revoked = await begun({ 'x-api-key': api_key });
    await lab.revoke(api_key);
    expect(await Promise.all([kept(), revoked()])).toEqual([202, 401]);
    expect(lab.dispatched).toHaveLength(1);
  });
});

describe('host names', () => {
  it.each([
    'kit.example.com',
    'KIT.example.com:8080',
    'localhost',
    'kit-7.local',
    '192.168.1.1:8080',
    '[::1]:80',
    'kit.example.com.',
  ])('serves %s', async (host) => {
    expect((await ask('GET', '/', { host })).status).toBe(200);
  });

  it('answers probes under any name: they have that of a container', async () => {
    const host = 'kit-service:8080';
    const statuses = ['/live', '/ready'].map(async (path) => (await ask('GET', path, { host })).status);
    expect(await Promise.all(statuses)).toEqual([200, 200]);
  });

  it('answers probes in HTTP/1.0, which name no host (haproxy/haproxy#1225), and nothing else', async () => {
    const statuses: string[] = [];
    for (const path of ['/ready', '/api/kits']) {
      const socket = connect(Number(new URL(lab.url).port), '127.0.0.1');
      socket.end(`GET ${path} HTTP/1.0\r\n\r\n`);
      statuses.push((await text(socket)).split('\r\n')[0] ?? '');
    }
    expect(statuses).toEqual(['HTTP/1.1 200 OK', 'HTTP/1.1 421 Misdirected Request']);
  });

  it('names the proxy that passes on another Host to the page that logs in', async () => {
    const from = { host: '127.0.0.1:8080', origin: 'https://kit.example.com' };
    const body = JSON.stringify({ api_key: lab.key });
    const refused = await ask('POST', '/api/session', { ...from, ...json }, body);
    expect([refused.status, refused.body['detail']]).toEqual([403, texts.foreign_origin(from)]);
  });

  it.each(['evil.example', 'kit.example.com.evil.example', 'localhost.evil.example'])(
    'does not serve %s',
    async (host) => {
      expect((await ask('GET', '/', { host })).status).toBe(421);
      expect((await ask('GET', '/api/kits', { ...key(), host })).status).toBe(421);
    },
  );
});

describe('methods', () => {
  it('answers HEAD as GET without the body', async () => {
    const { status, text } = await ask('HEAD', '/api/kits', key());
    expect([status, text]).toEqual([200, '']);
  });

  it.each([
    ['PUT', '/api/kits', 'GET, HEAD'],
    ['DELETE', `${kit}/telemetry`, 'GET, HEAD'],
    ['GET', order, 'POST'],
    ['POST', '/openapi.json', 'GET, HEAD'],
  ])('answers %s %s with 405 and what it knows', async (method, path, allow) => {
    const { status, headers } = await ask(method, path, { ...key(), ...json });
    expect([status, headers['allow']]).toEqual([405, allow]);
  });

  it('answers 404 where there is nothing at all', async () => {
    expect((await ask('GET', '/api/nothing', key())).status).toBe(404);
    expect((await ask('GET', '/%E0%A4%A')).status).toBe(404);
  });
});

describe('a request that comes again', () => {
  const body = JSON.stringify({ payload });
  const again = (): Record<string, string> => ({ ...key(), ...json, 'idempotency-key': 'once' });

  it('is carried out once and answered alike, with its address', async () => {
    const first = await ask('POST', order, again(), body);
    const second = await ask('POST', order, again(), body);
    expect([second.status, second.body, second.headers['location']]).toEqual([
      202,
      first.body,
      first.headers['location'],
    ]);
    expect(lab.dispatched).toHaveLength(1);
  });

  it('is carried out once also when both are under way', async () => {
    const both = await Promise.all([ask('POST', order, again(), body), ask('POST', order, again(), body)]);
    expect(both.map(({ status }) => status).sort((a, b) => a - b)).toSatisfy(
      ([a, b]: number[]) => a === 202 && (b === 202 || b === 409),
    );
    expect(lab.dispatched).toHaveLength(1);
  });

  it('is refused when it is another one under the same key', async () => {
    await ask('POST', order, again(), body);
    const other = JSON.stringify({ payload: { ...(payload as object), lat: 1 } });
    expect((await ask('POST', order, again(), other)).status).toBe(422);
  });

  it('may come again after it was refused', async () => {
    const asset = (name: string): string => JSON.stringify({ name, type: 'vehicle', parent_id: kit_id });
    expect((await ask('POST', `${kit}/assets`, again(), asset('x'))).status).toBe(422);
    const good = JSON.stringify({ name: 'x', type: 'vehicle' });
    expect((await ask('POST', `${kit}/assets`, again(), good)).status).toBe(201);
  });
});

describe('everything else', () => {
  it('reports whether it can serve', async () => {
    expect((await ask('GET', '/ready')).status).toBe(200);
    lab.broker.fault = texts.service_not_connected;
    expect((await ask('GET', '/ready')).status).toBe(503);
    expect((await ask('GET', '/live')).status).toBe(200);
  });

  it('gives every answer the headers that keep a browser safe, and the page the right to play video', async () => {
    for (const path of ['/', '/api/kits', '/nothing']) {
      const { headers } = await ask('GET', path, key());
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'content-security-policy': holding("connect-src 'self' http://10.0.0.1:8889;"),
      });
    }
  });

  it('slows down a client that guesses keys, and no client that has a key', async () => {
    const guess = { 'x-api-key': `kc_000000000000_${'A'.repeat(32)}` };
    const answers: number[] = [];
    while (!answers.includes(429) && answers.length < 1_000)
      answers.push((await ask('GET', '/api/kits', guess)).status);
    // Each endpoint of the document may be asked with a wrong key before that.
    expect(answers.slice(0, 60)).toEqual(Array.from({ length: 60 }, () => 401));
    expect(answers.at(-1)).toBe(429);
    expect((await ask('GET', '/api/kits', key())).status).toBe(200);
  });

  it('slows down a host that guesses each key from another address of its network', async () => {
    const gate = new Gate({ keys: new KeyRing(lab.store), store: lab.store, hosts: [], isSecure: false });
    const ends: unknown[] = [];
    for (let n = 0; n < 65; n += 1)
      for (const part of ['::1', '::2:1', '::3:0:0:1', ':0:0:4::1']) {
        const asker = { headers: {}, address: `2001:db8${part}${n}` };
        const guess = gate.byKey(`kc_000000000000_${'A'.repeat(32)}`, asker);
        ends.push(await guess.catch((error: unknown) => error));
      }
    const kinds = ends.map((end) => end instanceof RequestProblem && end.kind);
    expect(kinds.slice(0, 60)).toEqual(Array.from({ length: 60 }, () => 'unauthorised'));
    expect(kinds.at(-1)).toBe('too-many-requests');
  });

  it('takes no key twice in one request', async () => {
    const socket = connect(Number(new URL(lab.url).port), '127.0.0.1');
    const header = `X-API-Key: ${lab.key}\r\n`;
    socket.write(`GET /api/kits HTTP/1.1\r\nHost: localhost\r\n${header}${header}Connection: close\r\n\r\n`);
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 401/u);
  });

  it('refuses headers that are too long', async () => {
    expect((await ask('GET', '/api/kits', { ...key(), 'x-long': 'x'.repeat(9_000) })).status).toBe(431);
  });

  it('tells in the log of a schema that only the kit can check, once, and sends the task', async () => {
    const [command] = (samples['commandList']?.['commands'] ?? []) as readonly JsonObject[];
    const odd = {
      ...command,
      input_schema: { type: 'object', properties: { name: { type: 'string', pattern: '^(a+)+$' } } },
    };
    await lab.publish(channels.commands(asset_id), { revision: 3, commands: [odd] });
    const body = JSON.stringify({ payload: { name: `${'a'.repeat(40)}!` } });
    for (let n = 0; n < 2; n += 1)
      expect((await ask('POST', order, { ...key(), ...json }, body)).status).toBe(202);
    await eventually('both are handed over', () => lab.dispatched.length === 2);
    expect(lab.log.lines.filter(({ sentence }) => sentence.includes('only the kit checks'))).toHaveLength(1);
  });
});
