/** Requests as other clients send them: without a body, with long paths, with names that cannot be stored, too deep. */
import { connect } from 'node:net';
import { once } from 'node:events';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { channels } from '../../../../src/contract/topics.ts';
import { asset_id, kit_id, samples } from '../../../support/contract-samples.ts';
import { texts } from '../../../../src/cloud/texts.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';

let lab: ServiceLab;
beforeEach(async () => {
  lab = await startServiceLab(kit_id);
  await lab.publish(channels.state, samples['kitState'] ?? {});
  await lab.publish(channels.asset(asset_id), samples['announcement'] ?? {});
  await lab.publish(channels.commands(asset_id), {
    revision: 1,
    commands: [
      { ...land, name: 'land', input_schema: {} },
      { ...land, name: 'set_txpower' },
    ],
  });
});
afterEach(async () => lab.stop());

const kit = `/api/kits/${kit_id}`;
const command = `${kit}/assets/${asset_id}/commands`;
const land = {
  id: '00000000-0000-4000-8000-00000000000a',
  name: 'land',
  description: 'Lands.',
  risk_level: 'low',
  requires_approval: false,
  // As zod writes a union of literals.
  input_schema: {
    type: 'object',
    properties: {
      dbm: {
        anyOf: [
          { type: 'number', const: 10 },
          { type: 'number', const: 20 },
          { type: 'string', const: 'auto' },
        ],
      },
    },
    required: ['dbm'],
    additionalProperties: false,
  },
};

/** Sends exactly these header lines, and this body. */
async function raw(path: string, lines: readonly string[], body = ''): Promise<number> {
  const socket = connect(Number(new URL(lab.url).port), '127.0.0.1');
  socket.write(
    [
      `POST ${path} HTTP/1.1`,
      'Host: localhost',
      `X-API-Key: ${lab.key}`,
      'Connection: close',
      ...lines,
      '',
      body,
    ].join('\r\n'),
  );
  const [first] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return Number(first.toString('latin1').split(' ')[1]);
}

async function ask(path: string, body?: unknown, method?: string) {
  const response = await fetch(lab.url + path, {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    headers: { 'x-api-key': lab.key, 'content-type': 'application/json' },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const answer: unknown = text === '' ? undefined : JSON.parse(text);
  return { status: response.status, headers: response.headers, body: answer as { readonly id: string } };
}

describe('A request without a body', () => {
  it.each([
    ['no length', []],
    ['length 0', ['Content-Length: 0']],
    [
      'an empty form, as curl -d sends it',
      ['Content-Length: 0', 'Content-Type: application/x-www-form-urlencoded'],
    ],
    ['an empty JSON body', ['Content-Length: 0', 'Content-Type: application/json']],
    ['empty chunks', ['Transfer-Encoding: chunked', 'Content-Type: application/json']],
  ])('sends a command without parameters: %s', async (_, lines) => {
    const body = lines.some((line) => line.startsWith('Transfer')) ? '0\r\n\r\n' : '';
    expect(await raw(`${command}/land`, lines, body)).toBe(202);
    expect(lab.dispatched).toMatchObject([{ command_name: 'land', payload: {} }]);
  });

  it('cancels a task', async () => {
    const { body } = await ask(`${command}/land`, {});
    expect(await raw(`${kit}/tasks/${body.id}/cancel`, [])).toBe(202);
    expect(lab.cancelled).toEqual([body.id]);
  });

  it('is not enough for an asset, and a form with content is refused', async () => {
    expect(await raw(`${kit}/assets`, [])).toBe(422);
    const form = ['Content-Length: 3', 'Content-Type: application/x-www-form-urlencoded'];
    expect(await raw(`${command}/land`, form, 'a=1')).toBe(415);
  });
});

describe('A body with a content coding', () => {
  const json = '{"payload":{}}';
  const lines = (coding: string, body: string | Buffer): readonly string[] => [
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Content-Type: application/json',
    `Content-Encoding: ${coding}`,
  ];

  it.each(['gzip', 'br', 'identity, gzip', 'nonsense'])(
    'is refused with the codings that are accepted, whatever it holds: %s',
    async (coding) => {
      for (const body of [json, gzipSync(json)]) {
        const response = await fetch(`${lab.url}${command}/land`, {
          method: 'POST',
          headers: {
            'x-api-key': lab.key,
            'content-type': 'application/json',
            'content-encoding': coding,
          },
          body,
        });
        expect([response.status, response.headers.get('accept-encoding')]).toEqual([415, 'identity']);
        expect(await response.json()).toMatchObject({ detail: texts.body_coded(coding) });
      }
      expect(lab.dispatched).toEqual([]);
    },
  );

  it.each(['identity', 'IDENTITY', ''])('is accepted without one, named %j', async (coding) => {
    expect(await raw(`${command}/land`, lines(coding, json), json)).toBe(202);
  });

  it('is no body when it is empty', async () => {
    expect(await raw(`${command}/land`, lines('gzip', ''))).toBe(202);
  });
});

describe('A payload', () => {
  it.each([{ dbm: 99 }, { dbm: 10, foo: 1 }, {}, { dbm: 'full' }])(
    'that breaks a schema with choices is refused before anything is sent: %j',
    async (payload) => {
      expect((await ask(`${command}/set_txpower`, { payload })).status).toBe(422);
      expect(lab.dispatched).toEqual([]);
    },
  );

  it.each([{ dbm: 20 }, { dbm: 'auto' }])('of one of the choices is sent: %j', async (payload) => {
    expect((await ask(`${command}/set_txpower`, { payload })).status).toBe(202);
  });

  it('and metadata that are nested too deep are 400', async () => {
    const deep = `${'{"a":'.repeat(6_000)}1${'}'.repeat(6_000)}`;
    const asset = `{"name":"x","type":"y","metadata":${deep}}`;
    expect((await ask(`${kit}/assets`, asset)).status).toBe(400);
    expect((await ask(`${command}/set_txpower`, `{"payload":${deep}}`)).status).toBe(400);
  });
});

describe('A member named __proto__', () => {
  it.each(['__proto__', '\\u005f_proto__', '__pro\\u0074o__', '__\\u0070roto__'])(
    'is refused, not left out, also as %s',
    async (name) => {
      const asset = `{"name":"x","type":"y","metadata":{"crew":{"${name}":{"a":1}}}}`;
      expect(await ask(`${kit}/assets`, asset)).toMatchObject({
        status: 400,
        body: { detail: texts.body_rejected(texts.lost_member) },
      });
      const text = '{"name":"x","type":"y","metadata":{"crew":"__proto__","\\u005fx":1}}';
      expect(await ask(`${kit}/assets`, text)).toMatchObject({
        status: 201,
        body: { metadata: { crew: '__proto__', _x: 1 } },
      });
    },
  );
});

describe('A name', () => {
  it.each(['"\\ud800"', '"a\\u0000b"', '"a\\u001bb"'])(
    'that cannot be shown is refused: %s',
    async (name) => {
      expect((await ask(`${kit}/assets`, `{"name":${name},"type":"vehicle"}`)).status).toBe(422);
      expect((await ask(`${kit}/assets`, `{"name":"x","type":${name}}`)).status).toBe(422);
    },
  );
});

describe('A path', () => {
  it('may have its ids in upper case and a slash at its end', async () => {
    const upper = `/api/kits/${kit_id.toUpperCase()}/assets/${asset_id.toUpperCase()}`;
    for (const path of [upper, `${upper}/`, `${kit}/`, '/api/kits/', `${upper}/telemetry/`]) {
      expect([path, (await ask(path)).status]).toEqual([path, 200]);
    }
    const child = { name: 'x', type: 'y', parent_id: asset_id.toUpperCase() };
    expect((await ask(`${kit}/assets`, child)).body).toMatchObject({ parent_id: asset_id });
  });

  it('of the socket answers a plain request with 426', async () => {
    const { status, headers, body } = await ask(`${kit}/ws`);
    expect([status, headers.get('upgrade')]).toEqual([426, 'websocket']);
    expect(body).toMatchObject({ type: '/problems/upgrade-required' });
  });
});

describe('A partner asset below another one', () => {
  it('becomes a root when its parent is removed', async () => {
    const parent = (await ask(`${kit}/assets`, { name: 'Truck', type: 'vehicle' })).body.id;
    const child = (await ask(`${kit}/assets`, { name: 'Mast', type: 'sensor', parent_id: parent })).body.id;
    expect((await ask(`${kit}/assets/${parent}`, undefined, 'DELETE')).status).toBe(204);
    expect((await ask(`${kit}/assets/${child}`)).body).toMatchObject({ parent_id: null });
    const { body } = await ask(`${kit}/assets`);
    expect(body).toMatchObject({ assets: [{ id: asset_id }, { id: child, parent_id: null }] });
  });
});
