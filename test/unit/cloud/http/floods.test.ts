/** Floods of requests: those of one connection wait for one another, and what a stranger sends is not read. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Hono } from 'hono';
import { describe, expect, it } from 'vitest';
import type { Env } from '../../../../src/cloud/http/context.ts';
import { jsonOnly } from '../../../../src/cloud/http/guards.ts';
import { kit_id } from '../../../support/contract-samples.ts';
import { eventually } from '../../../support/eventually.ts';
import { heldServiceOfEachTest } from '../../../support/service/held-store.ts';

const opened: Socket[] = [];
const scene = heldServiceOfEachTest(() => {
  for (const socket of opened.splice(0)) socket.destroy();
});

const ask = async (path: string, key = scene.lab.key): Promise<number> => {
  const answer = await fetch(`${scene.lab.url}${path}`, { headers: { 'x-api-key': key } });
  await answer.arrayBuffer();
  return answer.status;
};
/** What was sent before has been received by then: it needs nothing of the database. */
const received = async (): Promise<number> => ask('/ready');

describe('long bodies', () => {
  /** The turn of the event loop in which the route had each of six requests with such a body. */
  async function turnsOf(body: string): Promise<number[]> {
    let turn = 0;
    const seen: number[] = [];
    const count = (): void => {
      turn += 1;
      next = setImmediate(count);
    };
    let next = setImmediate(count);
    const app = new Hono<Env>().use(jsonOnly()).post('/', (c) => {
      seen.push(turn);
      return c.body(null, 204);
    });
    try {
      const headers = { 'content-type': 'application/json' };
      const asked = Array.from({ length: 6 }, async () =>
        app.request('/', { method: 'POST', headers, body }),
      );
      expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(asked.map(() => 204));
    } finally {
      clearImmediate(next);
    }
    return seen;
  }

  it('are read in a turn of the event loop each, and short ones together', async () => {
    expect(new Set(await turnsOf(JSON.stringify({ payload: 'x'.repeat(5_000) }))).size).toBe(6);
    expect(new Set(await turnsOf('{"payload":{}}')).size).toBeLessThan(6);
  });
});

/** A connection on which so many requests follow each other without a wait. */
async function pipelined(count: number, key: string): Promise<{ socket: Socket; text: () => string }> {
  const { hostname, port } = new URL(scene.lab.url);
  const socket = connect({ host: hostname, port: Number(port) });
  opened.push(socket);
  socket.on('error', () => undefined);
  let text = '';
  socket.on('data', (bytes: Buffer) => (text += bytes.toString('latin1')));
  await once(socket, 'connect');
  socket.write(`GET /api/kits HTTP/1.1\r\nHost: ${hostname}\r\nX-Api-Key: ${key}\r\n\r\n`.repeat(count));
  return { socket, text: () => text };
}

describe('the requests of one connection', () => {
  it('are served one after the other', async () => {
    const { text } = await pipelined(5, scene.lab.key);
    await eventually('the first one reads', () => scene.store.begun === 1);
    for (let n = 0; n < 5; n += 1) await received();
    expect(scene.store.begun).toBe(1);
    scene.store.release();
    await eventually('all are answered', () => text().match(/HTTP\/1\.1 200 /gu)?.length === 5);
  });

  it('are cut off with it when many come without a wait', async () => {
    const { socket } = await pipelined(200, scene.lab.key);
    await eventually('it is closed', () => socket.destroyed);
    expect(scene.store.begun).toBeLessThanOrEqual(1);
  });
});

describe('a client without a key', () => {
  const post = async (path: string, body: string): Promise<number> => {
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${scene.lab.url}${path}`, { method: 'POST', headers, body });
    await answer.arrayBuffer();
    return answer.status;
  };

  it.each([
    ['too many values', `[${'1,'.repeat(30_000)}1]`],
    ['no JSON', '{"__proto__"'],
    ['a lost member', '{"__proto__":1}'],
  ])('has its body left unread: %s', async (_, body) => {
    expect(await post(`/api/kits/${kit_id}/assets`, body)).toBe(401);
  });

  it('may send what a session needs and no more', async () => {
    expect(await post('/api/session', JSON.stringify({ api_key: 'x'.repeat(4_096) }))).toBe(413);
    expect(await post('/api/session', JSON.stringify({ api_key: 'x' }))).toBe(401);
  });
});
