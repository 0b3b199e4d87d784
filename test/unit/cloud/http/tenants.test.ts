/** Two tenants on one service: no request, cursor or socket of one key has anything of the kits of the other. */
import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { channels } from '../../../../src/contract/topics.ts';
import { asset_id, kit_id, samples, task_id } from '../../../support/contract-samples.ts';
import { eventually } from '../../../support/eventually.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';

const other_kit = '11111111-1111-4111-8111-111111111111';
/** In everything that the kit of the first tenant reports. */
const secret = 'only the first tenant';
let lab: ServiceLab;
let other_key: string;
let alarm_id: string;
const sockets: WebSocket[] = [];

beforeAll(async () => {
  lab = await startServiceLab(kit_id, { hasHistory: true });
  other_key = await lab.giveKey({ kits: [other_kit] });
  for (const kit of [kit_id, other_kit])
    await lab.publish(channels.state, samples['kitState'] ?? {}, { kit });
  await reportSecrets();
  const { alarms } = (await (await ask('/alarms', lab.key)).json()) as { alarms: readonly { id: string }[] };
  alarm_id = alarms[0]?.id ?? '';
});
afterAll(async () => {
  for (const socket of sockets) socket.terminate();
  await lab.stop();
});

async function reportSecrets(): Promise<void> {
  await lab.publish(channels.asset(asset_id), { ...samples['announcement'], name: secret });
  await lab.publish(channels.commands(asset_id), samples['commandList'] ?? {});
  await lab.publish(channels.telemetry, { ...samples['kitTelemetry'], battery: 5 });
  await lab.publish(channels.feed(asset_id, 'gps'), { lat: 47, lon: 8, alt_m: null, text: secret });
  await lab.publish(channels.event(asset_id, 'motion'), { detected: true, text: secret });
  await lab.publish(channels.task(task_id), samples['taskReport'] ?? {});
}

const ask = async (path: string, key = other_key, init: RequestInit = {}): Promise<Response> =>
  fetch(`${lab.url}/api${path}`, {
    ...init,
    headers: { 'x-api-key': key, ...(init.body !== undefined && { 'content-type': 'application/json' }) },
  });
const asset = `/assets/${asset_id}`;

it.each([
  '',
  '/telemetry',
  '/links',
  '/location',
  '/battery',
  '/queue',
  '/assets',
  '/tasks',
  `/tasks/${task_id}`,
  '/history',
  '/history?order=arrival',
  '/events',
  '/events?order=arrival',
  '/series?select=kit:battery',
  '/series?select=kit:battery&tz=kit',
  '/export',
  '/completeness',
  '/history/erasures',
  '/alarms',
  '/alarms/ALARM',
  asset,
  `${asset}/telemetry`,
  `${asset}/commands`,
  `${asset}/track`,
  `${asset}/history`,
  `${asset}/tasks`,
])('a kit of another tenant is none: GET %s', async (path) => {
  const response = await ask(`/kits/${kit_id}${path.replace('ALARM', alarm_id)}`);
  expect(response.status).toBe(404);
  expect(await response.text()).not.toContain(secret);
});

it.each([
  ['PATCH', '', { name: 'mine' }],
  ['POST', '/assets', { name: 'x', type: 'vehicle' }],
  ['DELETE', asset, undefined],
  ['POST', `${asset}/commands/arm`, {}],
  ['POST', `${asset}/location`, { lat: 1, lon: 1 }],
  ['POST', '/locations', { locations: [{ asset_id, lat: 1, lon: 1 }] }],
  ['POST', `/tasks/${task_id}/cancel`, {}],
  ['PATCH', '/alarms/ALARM', { acknowledged: true }],
  ['DELETE', '/history?before=2026-01-01T00:00:00Z', undefined],
])('a kit of another tenant is none: %s %s', async (method, path, body) => {
  const init = { method, ...(body && { body: JSON.stringify(body) }) };
  expect((await ask(`/kits/${kit_id}${path.replace('ALARM', alarm_id)}`, other_key, init)).status).toBe(404);
});

it.each(['/kits', '/alarms', '/events', '/events?order=arrival', '/assets.geojson'])(
  'a list of all kits has nothing of another tenant, and refuses its kits by name: %s',
  async (path) => {
    const own = await (await ask(path, lab.key)).text();
    expect(own).toContain(kit_id);
    expect(await (await ask(path)).text()).not.toMatch(new RegExp(`${secret}|${kit_id}|${asset_id}`, 'u'));
    if (path === '/kits') return;
    const named = `${path}${path.includes('?') ? '&' : '?'}kits=${kit_id}`;
    expect((await ask(named)).status).toBe(404);
  },
);

it('a cursor of another tenant opens nothing', async () => {
  const path = '/events?order=arrival&limit=1';
  const { next } = (await (await ask(path, lab.key)).json()) as { next: string };
  const events = await (await ask(`${path}&cursor=${next}`)).text();
  expect(events).not.toMatch(new RegExp(`${secret}|${asset_id}|"kit_id":"${kit_id}`, 'u'));
});

it('neither socket has anything of another tenant', async () => {
  const open = (path: string): WebSocket => {
    const address = `${lab.url.replace('http', 'ws')}/api${path}`;
    const socket = new WebSocket(address, { headers: { 'x-api-key': other_key } });
    socket.on('error', () => undefined);
    sockets.push(socket);
    return socket;
  };
  const [, refused] = (await once(open(`/kits/${kit_id}/ws`), 'unexpected-response')) as [
    unknown,
    { statusCode: number },
  ];
  expect(refused.statusCode).toBe(404);

  const fleet = open('/ws');
  const frames: string[] = [];
  fleet.on('message', (raw: Buffer) => frames.push(raw.toString()));
  await once(fleet, 'open');
  fleet.send('{"type":"subscribe","summaries":true,"alarms":true}');
  await eventually('both lists', () => frames.length >= 2);
  await reportSecrets();
  await lab.publish(channels.event(asset_id, 'motion'), { detected: true, text: 'own' }, { kit: other_kit });
  await eventually('its own alarm', () => frames.some((frame) => frame.includes('"own"')));
  expect(frames.join('\n')).not.toMatch(new RegExp(`${secret}|${kit_id}`, 'u'));
  fleet.send(JSON.stringify({ type: 'subscribe', kits: [kit_id], assets: '*' }));
  expect((await once(fleet, 'close'))[0]).toBe(4403);
});
