/** The WebSocket for many kits, with a real client. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import { channels } from '../../../../src/contract/topics.ts';
import { type FleetServerFrame, fleetServerFrame } from '../../../../src/cloud/api/frames.ts';
import type { KitResource } from '../../../../src/cloud/api/resources.ts';
import { silent_after_ms } from '../../../../src/cloud/api/views.ts';
import { asset_id, kit_id, samples } from '../../../support/contract-samples.ts';
import { eventually } from '../../../support/eventually.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';

const other_kit = '11111111-1111-4111-8111-111111111111';
const silent_kit = '22222222-2222-4222-8222-222222222222';
const foreign_kit = '33333333-3333-4333-8333-333333333333';

let lab: ServiceLab;
let key: string;
const sockets: WebSocket[] = [];
beforeEach(async () => {
  lab = await startServiceLab(kit_id, { socket_limits: { sockets_per_key: 3, kits_per_socket: 2 } });
  for (const kit of [kit_id, other_kit, foreign_kit]) {
    await lab.publish(channels.state, samples['kitState'] ?? {}, { kit });
    await lab.publish(
      channels.telemetry,
      { battery: 80, wans: [{ name: 'eth3', status: 'online' }] },
      { kit },
    );
  }
  key = await lab.giveKey({ kits: [kit_id, other_kit, silent_kit] });
});
afterEach(async () => {
  vi.useRealTimers();
  for (const socket of sockets.splice(0)) socket.terminate();
  await lab.stop();
});

async function connect(api_key = key) {
  const socket = new WebSocket(`${lab.url.replace('http', 'ws')}/api/ws`, ['kit.v1'], {
    headers: { 'x-api-key': api_key },
  });
  sockets.push(socket);
  const frames: FleetServerFrame[] = [];
  socket.on('message', (raw: Buffer) =>
    frames.push(fleetServerFrame.parse(JSON.parse(raw.toString('utf8')))),
  );
  const closed = new Promise<number>((resolve) => socket.on('close', resolve));
  await once(socket, 'open');
  const kits = (): ReadonlyMap<string, KitResource> =>
    new Map(
      frames.flatMap((frame) => (frame.type === 'summaries' ? frame.kits.map((kit) => [kit.id, kit]) : [])),
    );
  return { socket, frames, closed, kits, send: (frame: object) => socket.send(JSON.stringify(frame)) };
}

const ofKit = (frames: readonly FleetServerFrame[], kit: string): readonly FleetServerFrame[] =>
  frames.filter((frame) => 'kit_id' in frame && frame.kit_id === kit);

describe('Fleet socket', () => {
  it('sends the summaries of all kits of the key, then those that change', async () => {
    const client = await connect();
    client.send({ type: 'subscribe', summaries: true });
    await eventually('the list', () => client.kits().size === 3);
    expect(client.frames[0]).toMatchObject({ type: 'summaries', seq: 0, left: 0 });
    expect(client.kits().get(silent_kit)).toMatchObject({
      live: null,
      summary: { attention: [{ key: 'never' }] },
    });
    expect(client.kits().get(kit_id)?.summary).toMatchObject({
      link: { name: 'eth3' },
      battery: 80,
      waiting: 3,
      assets: { online: 0, total: 0 },
    });
    await lab.publish(channels.asset(asset_id), samples['announcement'] ?? {}, { kit: other_kit });
    await lab.publish(
      channels.event(asset_id, 'asset_status'),
      { status: 'offline', reason: 'silent' },
      { kit: other_kit },
    );
    await lab.publish(channels.telemetry, { battery: 9 }, { kit: other_kit });
    await lab.publish(channels.telemetry, { battery: 7 }, { kit: foreign_kit });
    await eventually('the change', () => client.kits().get(other_kit)?.summary.battery === 9);
    expect(client.kits().get(other_kit)?.summary).toMatchObject({
      assets: { online: 0, total: 1 },
      attention: [
        { key: 'battery', level: 'bad', value: 9 },
        { key: 'degraded', level: 'warn' },
        { key: 'asset', level: 'warn', subject: asset_id },
        { key: 'queue', level: 'warn', value: 3 },
      ],
    });
    expect(client.kits().has(foreign_kit)).toBe(false);
    expect(client.frames.map(({ seq }) => seq)).toEqual(client.frames.map((_, index) => index));
  });

  it('sends the changes of a second together, however many there are', async () => {
    const client = await connect();
    client.send({ type: 'subscribe', summaries: true });
    await eventually('the list', () => client.kits().size === 3);
    for (let battery = 1; battery <= 60; battery += 1) await lab.publish(channels.telemetry, { battery });
    await eventually('the newest', () => client.kits().get(kit_id)?.summary.battery === 60);
    expect(client.frames.filter(({ type }) => type === 'summaries').length).toBeLessThan(10);
  });

  it('reports a kit that falls silent, without a message about it', async () => {
    const client = await connect();
    client.send({ type: 'subscribe', summaries: true });
    await eventually('the list', () => client.kits().get(kit_id)?.online === true);
    await lab.heardAt(Date.now() - silent_after_ms + 2_000);
    await eventually('the silence', () => client.kits().get(kit_id)?.online === false);
    expect(client.kits().get(kit_id)?.summary.attention[0]).toMatchObject({ key: 'offline', level: 'bad' });
  });

  it('sends every change of the kits that were named, each frame with its kit', async () => {
    const client = await connect();
    client.send({ type: 'subscribe', kits: [kit_id, other_kit.toUpperCase()] });
    await eventually(
      'the snapshots',
      () => client.frames.filter(({ type }) => type === 'snapshot').length === 2,
    );
    await lab.publish(channels.feed(asset_id, 'gps'), { lat: 47.1, lon: 8 }, { kit: other_kit });
    await eventually('the feed', () => ofKit(client.frames, other_kit).some(({ type }) => type === 'feed'));
    expect(ofKit(client.frames, kit_id).map(({ type }) => type)).toEqual(['snapshot']);
    client.send({ type: 'subscribe', kits: [kit_id] });
    await eventually('the new snapshot', () => ofKit(client.frames, kit_id).length === 2);
    const before = ofKit(client.frames, other_kit).length;
    await lab.publish(channels.feed(asset_id, 'gps'), { lat: 47.2, lon: 8 }, { kit: other_kit });
    await lab.publish(channels.feed(asset_id, 'gps'), { lat: 47.3, lon: 8 });
    await eventually('the feed of the kit', () =>
      ofKit(client.frames, kit_id).some(({ type }) => type === 'feed'),
    );
    expect(ofKit(client.frames, other_kit)).toHaveLength(before);
  });

  it.each([
    [
      'more kits than a socket may follow',
      { type: 'subscribe', kits: [kit_id, other_kit, silent_kit] },
      4403,
    ],
    ['a kit that the key does not have', { type: 'subscribe', kits: [foreign_kit] }, 4403],
    ['a frame that is not valid', { type: 'subscribe', kits: 'all' }, 4400],
  ])('is closed for %s', async (_, frame, code) => {
    const client = await connect();
    client.send(frame);
    expect(await client.closed).toBe(code);
  });

  it('gives a busy kit and a quiet one their turns with a slow reader, and sends the newest values', async () => {
    // It misses each heartbeat while it reads nothing, and a busy machine publishes for longer than two of them.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const client = await connect();
    client.send({ type: 'subscribe', kits: [kit_id, other_kit] });
    await eventually('the snapshots', () => client.frames.length >= 2);
    client.socket.pause();
    // Frames are compressed: this one stays large.
    const large = randomBytes(30_000).toString('base64');
    for (let n = 1; n <= 400; n += 1) {
      await lab.publish(channels.feed(asset_id, 'gps'), { lat: n / 100, lon: 1, large });
    }
    await lab.publish(channels.feed(asset_id, 'gps'), { lat: 3, lon: 1 }, { kit: other_kit });
    client.socket.resume();
    const text = (kit: string): string => JSON.stringify(ofKit(client.frames, kit).at(-1) ?? {});
    await eventually(
      'the newest',
      () => text(kit_id).includes('"lat":4,') && text(other_kit).includes('"lat":3,'),
    );
    expect(ofKit(client.frames, kit_id).length).toBeLessThan(400);
  });

  it('counts sockets by key, as configured', async () => {
    for (let n = 0; n < 3; n += 1) await connect();
    const fourth = new WebSocket(`${lab.url.replace('http', 'ws')}/api/ws`, {
      headers: { 'x-api-key': key },
    });
    fourth.on('error', () => undefined);
    sockets.push(fourth);
    const [, response] = (await once(fourth, 'unexpected-response')) as [unknown, { statusCode: number }];
    expect(response.statusCode).toBe(429);
  });
});
