/** The WebSocket of a kit, with a real client. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import { channels } from '../../../../src/contract/topics.ts';
import { serverFrame, type ServerFrame } from '../../../../src/cloud/api/frames.ts';
import { silent_after_ms } from '../../../../src/cloud/api/views.ts';
import { asset_id, kit_id, samples } from '../../../support/contract-samples.ts';
import { eventually } from '../../../support/eventually.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';

let lab: ServiceLab;
const sockets: WebSocket[] = [];
beforeEach(async () => {
  lab = await startServiceLab(kit_id);
  await lab.publish(channels.state, samples['kitState'] ?? {});
  await lab.publish(channels.telemetry, { battery: 80 });
  await lab.publish(channels.asset(asset_id), samples['announcement'] ?? {});
});
afterEach(async () => {
  vi.useRealTimers();
  for (const socket of sockets.splice(0)) socket.terminate();
  await lab.stop();
});

function connect({ key, kit = kit_id, origin }: { key?: string; kit?: string; origin?: string } = {}) {
  const socket = new WebSocket(`${lab.url.replace('http', 'ws')}/api/kits/${kit}/ws`, ['kit.v1'], {
    headers: { ...(key ? { 'x-api-key': key } : {}), ...(origin ? { origin } : {}) },
  });
  sockets.push(socket);
  const frames: ServerFrame[] = [];
  socket.on('message', (raw: Buffer) => frames.push(serverFrame.parse(JSON.parse(raw.toString('utf8')))));
  socket.on('error', () => undefined);
  const closed = new Promise<number>((resolve) => socket.on('close', resolve));
  return { socket, frames, closed, send: (frame: object) => socket.send(JSON.stringify(frame)) };
}

const of = (frames: readonly ServerFrame[], type: ServerFrame['type']): readonly ServerFrame[] =>
  frames.filter((frame) => frame.type === type);

it('sends a snapshot first and then what changes, each frame with the next number', async () => {
  const client = connect({ key: lab.key });
  await once(client.socket, 'open');
  client.send({ type: 'subscribe', assets: '*' });
  await eventually('the snapshot', () => client.frames.length > 0);
  expect(client.frames[0]).toMatchObject({
    type: 'snapshot',
    seq: 0,
    kit: { battery: 80, online: true },
    assets: [{ id: asset_id, alt_m: null }],
  });
  await lab.publish(channels.feed(asset_id, 'gps'), { lat: 47.1, lon: 8 });
  await lab.publish(channels.telemetry, { battery: 79 });
  await lab.publish(channels.event(asset_id, 'asset_status'), { status: 'offline', reason: 'silent' });
  await eventually('the changes', () => of(client.frames, 'asset').length > 0);
  expect(of(client.frames, 'feed')).toMatchObject([
    { asset_id, feed: 'gps', message: { data: { lat: 47.1 } } },
  ]);
  expect(of(client.frames, 'kit')).toMatchObject([{ kit: { battery: 79 } }]);
  expect(of(client.frames, 'asset')).toMatchObject([
    { asset: { status: 'offline', status_reason: 'silent' } },
  ]);
  expect(client.frames.map(({ seq }) => seq)).toEqual(client.frames.map((_, index) => index));
});

it('takes the key in the first frame, and shows only what was subscribed', async () => {
  const client = connect();
  await once(client.socket, 'open');
  client.send({ type: 'auth', api_key: lab.key });
  client.send({ type: 'subscribe', assets: [] });
  await eventually('the snapshot', () => client.frames.length > 0);
  expect(client.frames[0]).toMatchObject({ type: 'snapshot', assets: [] });
  await lab.publish(channels.feed(asset_id, 'gps'), { lat: 1, lon: 1 });
  await lab.publish(channels.telemetry, { battery: 78 });
  await eventually('the kit', () => of(client.frames, 'kit').length > 0);
  expect(of(client.frames, 'feed')).toEqual([]);
});

it.each([
  ['a wrong key', { type: 'auth', api_key: 'kc_000000000000_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' }, 4401],
  ['a frame before the key', { type: 'subscribe', assets: '*' }, 4401],
  ['an unknown frame', { type: 'dance' }, 4400],
])('closes the socket for %s', async (_, frame, code) => {
  const client = connect();
  await once(client.socket, 'open');
  client.send(frame);
  expect(await client.closed).toBe(code);
});

it('closes the socket of a key that may not see the kit as if there were none', async () => {
  const stranger = await lab.giveKey({ kits: [asset_id] });
  const late = connect();
  await once(late.socket, 'open');
  late.send({ type: 'auth', api_key: stranger });
  expect(await late.closed).toBe(4403);
  const early = connect({ key: stranger });
  const [, response] = (await once(early.socket, 'unexpected-response')) as [unknown, { statusCode: number }];
  expect(response.statusCode).toBe(404);
});

it('opens no socket for a page of another origin', async () => {
  const client = connect({ key: lab.key, origin: 'http://evil.example' });
  const [, response] = (await once(client.socket, 'unexpected-response')) as [
    unknown,
    { statusCode: number },
  ];
  expect(response.statusCode).toBe(403);
});

it('gives a reader that was slow the newest of each thing and not all that was between', async () => {
  // It misses each heartbeat while it reads nothing, and a busy machine publishes for longer than two of them.
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const client = connect({ key: lab.key });
  await once(client.socket, 'open');
  client.send({ type: 'subscribe', assets: '*' });
  await eventually('the snapshot', () => client.frames.length > 0);
  client.socket.pause();
  // Frames are compressed: this one stays large.
  const large = randomBytes(30_000).toString('base64');
  for (let n = 1; n <= 400; n += 1) {
    await lab.publish(channels.feed(asset_id, 'gps'), { lat: n / 100, lon: 1, large });
  }
  client.socket.resume();
  await eventually('the newest', () =>
    of(client.frames, 'feed').some(
      (frame) => frame.type === 'feed' && JSON.stringify(frame.message).includes('"lat":4,'),
    ),
  );
  expect(of(client.frames, 'feed').length).toBeLessThan(400);
});

it('reports without a message when a kit falls silent and its fix grows stale; until then a kit that stands still has a fresh one', async () => {
  const client = connect({ key: lab.key });
  await once(client.socket, 'open');
  client.send({ type: 'subscribe', assets: [] });
  await eventually('the snapshot', () => client.frames.length > 0);
  const fix = { latitude: 47, longitude: 8, source: 'satellite', kit_location: null, stale: false };
  const said_ms = Date.now() - 28_000;
  await lab.publish(
    channels.telemetry,
    { location: { ...fix, longitude: 9 } },
    { said_ms: said_ms - 60_000 },
  );
  await eventually('an older fix', () => of(client.frames, 'kit').length > 0);
  await lab.publish(channels.telemetry, { location: fix }, { said_ms });
  await eventually('the fix', () => of(client.frames, 'kit').length > 1);
  const fresh = { kit: { online: true, location: { stale: false, source: 'satellite' } } };
  expect(of(client.frames, 'kit')).toMatchObject([fresh, fresh]);
  // What was heard an hour ago, as the database has it after a restart of the service.
  await lab.heardAt(Date.now() - silent_after_ms + 1_500);
  await eventually('it is still online', () => of(client.frames, 'kit').length > 2);
  expect(of(client.frames, 'kit')[2]).toMatchObject({ kit: { online: true } });
  await eventually('it is offline', () => of(client.frames, 'queue').length > 3);
  expect(of(client.frames, 'kit')[3]).toMatchObject({ kit: { online: false } });
  expect(of(client.frames, 'queue')[3]).toMatchObject({ queue: { online: false } });
  const last = () => of(client.frames, 'kit').at(-1);
  await eventually('the stale fix', () => JSON.stringify(last()).includes('"stale":true'));
  expect(last()).toMatchObject({
    kit: { online: false, location: { stale: true, source: 'satellite_cached' } },
  });
});

it('closes with a reason when the service stops', async () => {
  const client = connect({ key: lab.key });
  await once(client.socket, 'open');
  await lab.stop();
  expect(await client.closed).toBe(1001);
  lab = await startServiceLab(kit_id);
});
