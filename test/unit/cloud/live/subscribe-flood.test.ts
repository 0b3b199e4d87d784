/** A client that subscribes again and again: what it costs is bounded, counted in readings of the database. */
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { kit_id } from '../../../support/contract-samples.ts';
import { eventually } from '../../../support/eventually.ts';
import { heldServiceOfEachTest } from '../../../support/service/held-store.ts';

/** Frames of a client within a second, with one left for its question at the end. */
const subscribes = 19;

const sockets: WebSocket[] = [];
const scene = heldServiceOfEachTest(() => {
  for (const socket of sockets.splice(0)) socket.terminate();
});

async function connect(path: string, key: string) {
  const socket = new WebSocket(`${scene.lab.url.replace('http', 'ws')}${path}`, ['kit.v1'], {
    headers: { 'x-api-key': key },
  });
  sockets.push(socket);
  const types: string[] = [];
  socket.on('message', (raw: Buffer) =>
    types.push((JSON.parse(raw.toString('utf8')) as { readonly type: string }).type),
  );
  await once(socket, 'open');
  return { types, send: (frame: object) => socket.send(JSON.stringify(frame)) };
}

const of_one = `/api/kits/${kit_id}/ws`;
const subscribe = { type: 'subscribe', assets: '*' };
const summaries = { type: 'subscribe', summaries: true };

describe('a client that subscribes again and again', () => {
  it.each([
    ['to the kit of its socket', of_one, subscribe, 'snapshot'],
    ['to a kit of many', '/api/ws', { ...subscribe, kits: [kit_id] }, 'snapshot'],
    ['to all summaries', '/api/ws', summaries, 'summaries'],
  ])('%s gets the first answer and the newest one', async (_, path, frame, answer) => {
    const client = await connect(path, scene.lab.key);
    for (let n = 0; n < subscribes; n += 1) client.send(frame);
    client.send({ type: 'ping' });
    await eventually('all frames are read', () => client.types.includes('heartbeat'));
    expect(scene.store.begun).toBe(1);
    scene.store.release();
    await eventually('the newest answer', () => client.types.filter((type) => type === answer).length === 2);
    expect(scene.store.begun).toBe(2);
  });

  it('from many sockets has one of them read at a time, and no other key waits for them', async () => {
    for (let n = 0; n < 6; n += 1) {
      const client = await connect(n % 2 ? of_one : '/api/ws', scene.lab.key);
      client.send(n % 2 ? subscribe : summaries);
      client.send({ type: 'ping' });
      await eventually('it is read', () => client.types.includes('heartbeat'));
    }
    expect(scene.store.begun).toBe(1);
    const other = await connect(of_one, await scene.lab.giveKey());
    other.send(subscribe);
    await eventually('the other key reads', () => scene.store.waiting.length === 2);
    scene.store.waiting.at(1)?.();
    await eventually('it is served', () => other.types.includes('snapshot'));
    expect(scene.store.begun).toBe(2);
  });

  it('and is gone before its turn has nothing read', async () => {
    const first = await connect(of_one, scene.lab.key);
    first.send(subscribe);
    await eventually('it reads', () => scene.store.begun === 1);
    const second = await connect(of_one, scene.lab.key);
    second.send(subscribe);
    second.send({ type: 'ping' });
    await eventually('it waits', () => second.types.includes('heartbeat'));
    const gone = sockets.at(-1);
    if (gone) {
      gone.terminate();
      await once(gone, 'close');
    }
    const third = await connect(of_one, scene.lab.key);
    third.send(subscribe);
    scene.store.release();
    await eventually('the third is served', () => third.types.includes('snapshot'));
    expect(scene.store.begun).toBe(2);
  });
});
