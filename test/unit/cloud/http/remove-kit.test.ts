/** Removing a kit over HTTP, and what sockets are told of it. */
import { once } from 'node:events';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { channels } from '../../../../src/contract/topics.ts';
import { fleetServerFrame, type FleetServerFrame } from '../../../../src/cloud/api/frames.ts';
import { texts } from '../../../../src/cloud/texts.ts';
import { kit_id, samples } from '../../../support/contract-samples.ts';
import { eventually } from '../../../support/eventually.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';

let lab: ServiceLab;
let admin: string;
beforeEach(async () => {
  lab = await startServiceLab(kit_id);
  admin = await lab.giveKey({ kits: '*' });
  await lab.publish(channels.state, samples['kitState'] ?? {});
  await lab.publish(channels.telemetry, { battery: 5, battery_charging: false });
});
afterEach(async () => lab.stop());

const ask = async (method = 'GET', key = admin) =>
  fetch(`${lab.url}/api/kits/${kit_id}`, { method, headers: { 'x-api-key': key } });
const stopKit = async (): Promise<void> =>
  lab.publish(channels.state, { ...samples['kitState'], online: false, reason: 'stopped' });

it('is refused while the kit is online, and to keys that may not erase', async () => {
  const refused = await ask('DELETE');
  expect([refused.status, await refused.json()]).toEqual([
    409,
    expect.objectContaining({ detail: texts.kit_online }),
  ]);
  await stopKit();
  const reader = await lab.giveKey({ scopes: ['read', 'assets:write'] });
  expect((await ask('DELETE', reader)).status).toBe(403);
  const stranger = await lab.giveKey({ kits: ['11111111-1111-4111-8111-111111111111'] });
  expect((await ask('DELETE', stranger)).status).toBe(404);
  expect((await ask()).status).toBe(200);
});

it('takes the kit from every list, also of the keys that name it', async () => {
  await stopKit();
  expect((await ask('DELETE', lab.key)).status).toBe(204);
  for (const key of [admin, lab.key]) {
    expect((await ask('GET', key)).status).toBe(404);
    const list = await fetch(`${lab.url}/api/kits`, { headers: { 'x-api-key': key } });
    expect(await list.json()).toEqual([]);
  }
  const line = lab.log.lines.find(({ sentence }) => sentence === texts.log_kit_removed);
  expect(line?.facts).toMatchObject({ kit_id, requested_by_name: 'test' });
});

it('tells sockets that the kit is gone', async () => {
  await stopKit();
  const socket = new WebSocket(`${lab.url.replace('http', 'ws')}/api/ws`, {
    headers: { 'x-api-key': admin },
  });
  const frames: FleetServerFrame[] = [];
  socket.on('message', (raw: Buffer) => frames.push(fleetServerFrame.parse(JSON.parse(raw.toString()))));
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'subscribe', summaries: true, alarms: true, kits: [kit_id] }));
  await eventually('the snapshot', () => frames.some(({ type }) => type === 'snapshot'));
  const lists = () => frames.flatMap((frame) => (frame.type === 'alarms' && frame.first ? [frame] : []));
  expect(lists().flatMap(({ alarms }) => alarms.map(({ what }) => what))).toContain('offline');
  await ask('DELETE');
  await eventually('the end', () => frames.some((frame) => frame.type === 'summaries' && frame.gone));
  expect(frames).toContainEqual(expect.objectContaining({ type: 'kit_gone', kit_id }));
  expect(frames.find((frame) => frame.type === 'summaries' && frame.gone)).toMatchObject({
    kits: [],
    gone: [kit_id],
  });
  expect(lists().at(-1)).toMatchObject({ alarms: [] });
  socket.terminate();
});
