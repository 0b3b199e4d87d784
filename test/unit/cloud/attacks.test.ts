/** The service as somebody on the local network meets it who means it ill: what he sends is refused, and holds or fills nothing. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { channels } from '../../../src/contract/topics.ts';
import { Service } from '../../../src/cloud/service.ts';
import { Changes } from '../../../src/cloud/changes.ts';
import { Gate } from '../../../src/cloud/access/gate.ts';
import { KeyRing } from '../../../src/cloud/access/keys.ts';
import { acceptSockets, socket_limits_default } from '../../../src/cloud/live/upgrade.ts';
import { asset_id, kit_id, samples } from '../../support/contract-samples.ts';
import { eventually } from '../../support/eventually.ts';
import { type ServiceLab, startServiceLab } from '../../support/service/service-lab.ts';

let lab: ServiceLab;
const opened: Socket[] = [];
beforeEach(async () => {
  lab = await startServiceLab(kit_id);
  await lab.publish(channels.state, samples['kitState'] ?? {});
  await lab.publish(channels.asset(asset_id), samples['announcement'] ?? {});
  await lab.publish(channels.commands(asset_id), samples['commandList'] ?? {});
});
afterEach(async () => {
  for (const socket of opened.splice(0)) socket.destroy();
  await lab.stop();
});

const kit = `/api/kits/${kit_id}`;
const json = { 'content-type': 'application/json' };
const policy = { 'content-security-policy': expect.stringContaining("default-src 'none'") as unknown };

async function ask(method: string, path: string, headers: Record<string, string> = {}, body = '') {
  const asked = request(lab.url, { path, method, headers, agent: false });
  asked.end(body);
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  return { status: response.statusCode, headers: response.headers, text: await text(response) };
}

const key = (): Record<string, string> => ({ 'x-api-key': lab.key });

function dial(about: { readonly allowHalfOpen?: boolean } = {}): Socket {
  const socket = connect({ port: Number(new URL(lab.url).port), host: '127.0.0.1', ...about });
  socket.on('error', () => undefined);
  opened.push(socket);
  return socket;
}

async function openSession(headers: Record<string, string> = {}): Promise<string> {
  const answer = await ask(
    'POST',
    '/api/session',
    { ...json, ...headers },
    JSON.stringify({ api_key: lab.key }),
  );
  expect(answer.status).toBe(204);
  return answer.headers['set-cookie']?.[0]?.split(';')[0] ?? '';
}

describe('addresses', () => {
  it.each([
    '/%61pi/kits',
    '//api/kits',
    '/./api/kits',
    '/x/../api/kits',
    '/api%2fkits',
    '/api/kits/',
    '/API/kits',
    `/api/kits/${kit_id}%00`,
    '/api/session/../kits',
    '/page/%2e%2e/%2e%2e/package.json',
    '/page/../../package.json',
    'http://evil.example/api/kits',
  ])('show a stranger nothing for %s', async (path) => {
    const { status, headers, text: said } = await ask('GET', path);
    expect([400, 401, 404]).toContain(status);
    expect(said).not.toContain('"online"');
    expect(said).not.toContain('dependencies');
    // What is no request at all never reaches the routes, and its answer has no body to guard.
    expect(status === 400 || headers['content-security-policy'] !== undefined).toBe(true);
  });

  it.each(['%E0%A4%A', '%', '%zz', '%00', '..%2f..', '%01'])(
    'that cannot be read are no fault of the service: %s',
    async (part) => {
      for (const path of [`/api/kits/${part}`, `${kit}/links/${part}`, `${kit}/assets/${part}/commands`]) {
        expect((await ask('GET', path, key())).status).toBe(404);
      }
    },
  );

  it('are refused at once when they are longer than any header may be', async () => {
    expect((await ask('GET', `/api/${'x'.repeat(9_000)}`, key())).status).toBe(431);
    expect((await ask('GET', `/api/${'x'.repeat(7_000)}`, key())).status).toBe(404);
  });
});

describe('host names', () => {
  it.each(['evil.example@localhost', 'localhost/.evil.example', 'localhost#evil', '[::1', 'local host'])(
    'that only look like one of ours are not served: "%s"',
    async (host) => {
      expect([400, 421]).toContain((await ask('GET', '/', { host })).status);
    },
  );

  it.each(['[fd00::7]', '[fe80::1]:8080', '10.0.0.1:1'])(
    'that are addresses are served: %s',
    async (host) => {
      expect((await ask('GET', '/ready', { host })).status).toBe(200);
    },
  );
});

describe('sessions', () => {
  const page = (cookie: string): Record<string, string> => ({ cookie, origin: lab.url });

  it('never take a secret that came with the request, and the one before is over', async () => {
    const planted = `kit_session=${'A'.repeat(43)}`;
    const first = await openSession({ cookie: planted });
    expect(first).not.toBe(planted);
    expect((await ask('GET', '/api/kits', page(planted))).status).toBe(401);
    const second = await openSession({ cookie: first });
    expect((await ask('GET', '/api/kits', page(first))).status).toBe(401);
    expect((await ask('GET', '/api/kits', page(second))).status).toBe(200);
  });

  it('end at their time', async () => {
    const hash = createHash('sha256').update('old').digest('hex');
    const key_id = lab.key.split('_')[1] ?? '';
    await lab.store.addSession(hash, key_id, Date.now() + 60_000);
    expect((await ask('GET', '/api/kits', page('kit_session=old'))).status).toBe(200);
    await lab.store.endSession(hash);
    await lab.store.addSession(hash, key_id, Date.now() - 1);
    expect((await ask('GET', '/api/kits', page('kit_session=old'))).status).toBe(401);
  });

  it('are not begun without end by one key: each is written to the disk', async () => {
    const body = JSON.stringify({ api_key: lab.key });
    const answers: (number | undefined)[] = [];
    for (let n = 0; n < 12; n += 1) answers.push((await ask('POST', '/api/session', json, body)).status);
    expect(answers.slice(0, 10)).toEqual(Array.from({ length: 10 }, () => 204));
    expect(answers.slice(10)).toEqual([429, 429]);
    expect((await ask('GET', '/api/kits', key())).status).toBe(200);
  });

  it('open no socket for a page of another origin, nor for one of this host on another port', async () => {
    const cookie = await openSession();
    for (const wrong of [
      { origin: 'http://127.0.0.1:1' },
      { origin: 'null' },
      { 'sec-fetch-site': 'same-site' },
    ]) {
      const headers = { cookie, ...wrong };
      const socket = new WebSocket(`${lab.url.replace('http', 'ws')}${kit}/ws`, ['kit.v1'], { headers });
      socket.on('error', () => undefined);
      const [, response] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage];
      expect(response.statusCode).toBe(403);
    }
  });

  it('are read by no other site: the cookie alone gives no answer to it', async () => {
    const cookie = await openSession();
    for (const method of ['GET', 'HEAD']) {
      const cross = { cookie, 'sec-fetch-site': 'same-site' };
      expect((await ask(method, '/api/kits', cross)).status).toBe(403);
      expect(
        (await ask(method, '/api/kits', { ...page(cookie), 'sec-fetch-site': 'same-origin' })).status,
      ).toBe(200);
    }
  });
});

describe('keys', () => {
  it('read nothing, neither by request nor by socket, when they may only send commands or change assets', async () => {
    const blind = await lab.giveKey({ scopes: ['commands', 'assets:write'] });
    for (const path of ['/api/kits', `${kit}/telemetry`, `${kit}/assets`, `${kit}/tasks`]) {
      expect((await ask('GET', path, { 'x-api-key': blind })).status).toBe(403);
    }
    const address = `${lab.url.replace('http', 'ws')}${kit}/ws`;
    const early = new WebSocket(address, ['kit.v1'], { headers: { 'x-api-key': blind } });
    early.on('error', () => undefined);
    const [, response] = (await once(early, 'unexpected-response')) as [unknown, IncomingMessage];
    expect(response.statusCode).toBe(403);
    const late = new WebSocket(address, ['kit.v1']);
    await once(late, 'open');
    late.send(JSON.stringify({ type: 'auth', api_key: blind }));
    expect(((await once(late, 'close')) as [number])[0]).toBe(4403);
  });

  it('stand in no line of the log and in no answer, whatever is done with them', async () => {
    const wrong = `kc_000000000000_${'B'.repeat(32)}`;
    const cookie = await openSession();
    await ask('GET', '/api/kits', { 'x-api-key': wrong });
    await ask('GET', `/api/kits/${lab.key}`, key());
    await ask('POST', '/api/session', json, JSON.stringify({ api_key: wrong }));
    lab.broker.fault = 'no broker';
    const answers = [
      await ask('POST', '/api/session', json, JSON.stringify({ key: lab.key })),
      await ask('POST', `${kit}/assets`, { ...key(), ...json }, '{'),
      await ask('GET', '/api/session', { cookie, origin: lab.url }),
      await ask('GET', '/ready', key()),
    ];
    const said = JSON.stringify([lab.log.lines, answers.map((answer) => answer.text)]);
    for (const secret of [lab.key, lab.key.slice(16), wrong, cookie.slice(12)])
      expect(said).not.toContain(secret);
  });
});

describe('bodies', () => {
  it.each(['__proto__', 'constructor', 'prototype'])('change nothing with a key "%s"', async (name) => {
    const evil = `{"${name}":{"polluted":true}}`;
    const asset = `{"name":"x","type":"vehicle","metadata":${evil}}`;
    // Metadata is free-form, but this one name would be lost.
    const isLost = name === '__proto__';
    const made = await ask('POST', `${kit}/assets`, { ...key(), ...json }, asset);
    expect(made.status).toBe(isLost ? 400 : 201);
    const order = `${kit}/assets/${asset_id}/commands/goto_waypoint`;
    for (const body of [`{"payload":${evil}}`, evil]) {
      expect((await ask('POST', order, { ...key(), ...json }, body)).status).toBe(isLost ? 400 : 422);
    }
    expect(Reflect.get({}, 'polluted')).toBeUndefined();
    expect((await ask('GET', `${kit}/assets`, key())).status).toBe(200);
  });

  it('come back as JSON that no browser takes for a page, whatever their names hold', async () => {
    const name = '<script>alert(1)</script>\u202Egpj.exe X-Evil: 1';
    const body = JSON.stringify({ name, type: 'vehicle' });
    const made = await ask('POST', `${kit}/assets`, { ...key(), ...json }, body);
    expect(made.status).toBe(201);
    const lines = JSON.stringify({ name: `${name}\r\nX-Evil: 1`, type: 'vehicle' });
    expect((await ask('POST', `${kit}/assets`, { ...key(), ...json }, lines)).status).toBe(422);
    expect(made.headers['x-evil']).toBeUndefined();
    const unknown = await ask('GET', `${kit}/links/${encodeURIComponent('<script>\u202E')}`, key());
    expect(unknown.status).toBe(404);
    expect(unknown.headers).toMatchObject({
      'content-type': 'application/problem+json',
      'x-content-type-options': 'nosniff',
      ...policy,
    });
  });
});

describe('answers of every kind', () => {
  it('bear the policy and are kept by no cache', async () => {
    const large = 'x'.repeat(70_000);
    const answers = [
      [401, await ask('GET', '/api/kits')],
      [404, await ask('GET', '/api/nothing', key())],
      [405, await ask('PUT', '/api/kits', key())],
      [413, await ask('POST', `${kit}/assets`, { ...key(), ...json }, large)],
      [415, await ask('POST', `${kit}/assets`, { ...key(), 'content-type': 'text/plain' }, 'a=1')],
      [421, await ask('GET', '/api/kits', { ...key(), host: 'evil.example' })],
      [422, await ask('POST', `${kit}/assets`, { ...key(), ...json }, '{}')],
    ] as const;
    for (const [status, answer] of answers) {
      expect(answer.status).toBe(status);
      expect(answer.headers).toMatchObject({ ...policy, 'cache-control': 'no-store' });
    }
  });
});

describe('connections', () => {
  it(
    'are closed when they send nothing, or only half of a request',
    { tags: 'long', timeout: 40_000 },
    async () => {
      const host = 'HTTP/1.1\r\nHost: localhost\r\n';
      const body = 'Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{';
      const halves = ['', `GET /api/kits ${host}`, `POST /api/session ${host}${body}`];
      const ends = halves.map(async (half) => {
        const socket = dial();
        socket.resume();
        if (half !== '') socket.write(half);
        await once(socket, 'close');
      });
      await Promise.all(ends);
      expect((await ask('GET', '/ready')).status).toBe(200);
    },
  );

  it('whose upgrade was refused are closed by us: a client that keeps its side open holds none', async () => {
    const socket = dial({ allowHalfOpen: true });
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';
    socket.write(`GET /nothing HTTP/1.1\r\nHost: localhost\r\n${upgrade}\r\n`);
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 404/u);
    await eventually('what is sent meets a closed door', () => {
      socket.write('x');
      return socket.destroyed;
    });
  });

  it('are answered in HTTP/1.1 when they offer HTTP/2 beside it', async () => {
    const offer = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAMAAABk' };
    expect((await ask('GET', '/api/kits', { ...key(), ...offer })).status).toBe(200);
  });

  it('are not counted when they end while their key is looked up', async () => {
    let answer = (): void => undefined;
    let asked = 0;
    const session = async (): Promise<string> => {
      asked += 1;
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      return lab.key.split('_')[1] ?? '';
    };
    const keys = new KeyRing(lab.store);
    await keys.reload();
    const done = async (): Promise<void> => undefined;
    const gate = new Gate({
      keys,
      hosts: [],
      isSecure: false,
      store: { addSession: done, endSession: done, session },
    });
    const ends = new AbortController();
    const server = createServer();
    const dispatch = async (): Promise<void> => undefined;
    const changes = new Changes();
    const parts = { store: lab.store, changes, log: lab.log, now: Date.now };
    acceptSockets(server, {
      ...parts,
      gate,
      service: new Service({ ...parts, dispatcher: { dispatch, cancel: dispatch } }),
      socket_limits: socket_limits_default,
      signal: ends.signal,
    });
    const arrived: Socket[] = [];
    server.on('connection', (socket) => arrived.push(socket));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const at = server.address();
    const port = typeof at === 'object' && at ? at.port : 0;
    const headers = { cookie: 'kit_session=x' };
    const visit = (): WebSocket => {
      const socket = new WebSocket(`ws://127.0.0.1:${port}${kit}/ws`, ['kit.v1'], { headers });
      socket.on('error', () => undefined);
      return socket;
    };
    for (let n = 1; n <= socket_limits_default.sockets_per_key; n += 1) {
      const socket = visit();
      await eventually('the key is looked up', () => asked === n);
      const cut = arrived.at(-1)?.destroy();
      if (cut?.closed === false) await once(cut, 'close');
      answer();
      socket.terminate();
    }
    const last = visit();
    await eventually('the key is looked up', () => asked > socket_limits_default.sockets_per_key);
    answer();
    await once(last, 'open');
    last.terminate();
    ends.abort();
    server.close();
  });
});
