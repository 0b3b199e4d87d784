/** Alarms over HTTP, the fleet socket and webhooks, and that no key sees those of another. */
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { alarm, alarmList } from '../../../../src/cloud/api/alarm-resources.ts';
import { type FleetServerFrame, fleetServerFrame } from '../../../../src/cloud/api/frames.ts';
import { channels } from '../../../../src/contract/topics.ts';
import { asset_id, kit_id } from '../../../support/contract-samples.ts';
import { eventually } from '../../../support/eventually.ts';
import { registeredWebhook } from '../../../support/service/registered-webhook.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';
import { calm } from '../story.ts';

const other_kit = '11111111-1111-4111-8111-111111111111';

let lab: ServiceLab;
let other_key: string;
const sockets: WebSocket[] = [];
beforeEach(async () => {
  lab = await startServiceLab(kit_id);
  other_key = await lab.giveKey({ kits: [other_kit] });
  for (const kit of [kit_id, other_kit]) await lab.publish(channels.state, calm, { kit });
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.terminate();
  await lab.stop();
});

const motion = async (detected: boolean, kit = kit_id): Promise<void> =>
  lab.publish(channels.event(asset_id, 'motion'), { detected }, { kit });
const link = async (status: string, kit = kit_id): Promise<void> =>
  lab.publish(channels.telemetry, { wans: [{ name: 'eth3', status }] }, { kit });

async function ask(path: string, { key = lab.key, method = 'GET', body }: Asked = {}) {
  const headers = { 'x-api-key': key, 'content-type': 'application/json' };
  return fetch(`${lab.url}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
}
interface Asked {
  readonly key?: string;
  readonly method?: string;
  readonly body?: object;
}
const list = async (query = '', key = lab.key) =>
  alarmList.parse(await (await ask(`/api/alarms${query}`, { key })).json());

async function follow(key: string) {
  const socket = new WebSocket(`${lab.url.replace('http', 'ws')}/api/ws`, { headers: { 'x-api-key': key } });
  sockets.push(socket);
  const frames: FleetServerFrame[] = [];
  socket.on('message', (raw: Buffer) =>
    frames.push(fleetServerFrame.parse(JSON.parse(raw.toString('utf8')))),
  );
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'subscribe', alarms: true }));
  await eventually('the list', () => frames.some(({ type }) => type === 'alarms'));
  return () => frames.flatMap((frame) => (frame.type === 'alarms' ? frame.alarms : []));
}

describe('Alarms over HTTP', () => {
  it('are listed by page, state, severity, subject and asset', async () => {
    await motion(true);
    await link('offline');
    await lab.publish(channels.telemetry, { battery: 5, battery_charging: false });
    const whatOf = async (query: string): Promise<readonly string[]> =>
      (await list(query)).alarms.map(({ what }) => what).sort();
    expect(await whatOf('')).toEqual(['battery', 'link', 'motion']);
    expect(await whatOf('?severity=critical,warning')).toEqual(['battery', 'link']);
    expect(await whatOf('?what=link')).toEqual(['link']);
    expect(await whatOf(`?assets=${asset_id}`)).toEqual(['motion']);
    expect(await whatOf('?state=closed')).toEqual([]);
    const first = await list('?limit=2');
    const second = await list(`?limit=2&cursor=${first.next}`);
    expect([...first.alarms, ...second.alarms].map(({ what }) => what).sort()).toEqual([
      'battery',
      'link',
      'motion',
    ]);
    expect(second.next).toBeNull();
    const ofKit = await ask(`/api/kits/${kit_id}/alarms`);
    expect(alarmList.parse(await ofKit.json()).alarms).toHaveLength(3);
    for (const bad of ['?state=shut', '?severity=9', '?cursor=x', '?stat=open', '?state='])
      expect((await ask(`/api/alarms${bad}`)).status).toBe(400);
  });

  it('are acknowledged, muted and noted by name, and closed by themselves', async () => {
    await link('offline');
    const id = (await list()).alarms[0]?.id ?? '';
    const path = `/api/kits/${kit_id}/alarms/${id}`;
    const change = async (body: object) => {
      const response = await ask(path, { method: 'PATCH', body });
      return response.ok ? alarm.parse(await response.json()) : response.status;
    };
    expect(await change({ acknowledged: true, note: 'on my way' })).toMatchObject({
      state: 'acknowledged',
      acknowledged: { by: 'test' },
      note: 'on my way',
    });
    const muted_until = new Date(Date.now() + 60_000).toISOString();
    expect(await change({ muted_until })).toMatchObject({ state: 'muted', muted_until, note: 'on my way' });
    expect(await change({ muted_until: null, acknowledged: false, note: null })).toMatchObject({
      state: 'open',
    });
    for (const bad of [{}, { acknowledged: 'yes' }, { muted_until: 'soon' }, { status: 'closed' }])
      expect(await change(bad)).toBe(422);
    await link('online');
    expect(alarm.parse(await (await ask(path)).json())).toMatchObject({ state: 'closed', count: 1 });
    expect((await list()).alarms).toEqual([]);
  });

  it('need the scope alarms to be changed', async () => {
    await link('offline');
    const id = (await list()).alarms[0]?.id ?? '';
    const key = await lab.giveKey({ scopes: ['read', 'commands'] });
    const path = `/api/kits/${kit_id}/alarms/${id}`;
    expect((await ask(path, { key })).status).toBe(200);
    expect((await ask(path, { key, method: 'PATCH', body: { acknowledged: true } })).status).toBe(403);
  });

  it('of one tenant are seen by no key of another, in requests, sockets and webhooks', async () => {
    const mine = await follow(lab.key);
    const theirs = await follow(other_key);
    const { store } = lab;
    const types = ['alarm', 'link'] as const;
    for (const [n, kit, key] of [
      [1, kit_id, lab.key],
      [2, other_kit, other_key],
    ] as const)
      await store.addWebhook(
        registeredWebhook({
          webhook_id: `hook ${n}`,
          url: 'https://app.example.com/hook',
          types,
          kits: [kit],
          key_id: key.split('_')[1] ?? '',
          created_ms: 0,
        }),
      );
    await motion(true);
    await link('offline');
    await eventually('the frames', () => mine().length === 2);
    const [each] = mine();
    expect((await list('', other_key)).alarms).toEqual([]);
    const path = `/api/kits/${kit_id}/alarms`;
    for (const [address, method] of [
      [`/api/alarms?kits=${kit_id}`, 'GET'],
      [path, 'GET'],
      [`${path}/${each?.id}`, 'GET'],
      [`${path}/${each?.id}`, 'PATCH'],
      [`/api/kits/${other_kit}/alarms/${each?.id}`, 'PATCH'],
    ] as const) {
      const body = method === 'PATCH' ? { body: { acknowledged: true } } : {};
      expect((await ask(address, { key: other_key, method, ...body })).status).toBe(404);
    }
    await link('offline', other_kit);
    await eventually('the frame of the other', () => theirs().length > 0);
    expect(theirs().map(({ kit_id: its }) => its)).toEqual([other_kit]);
    expect(mine().every(({ kit_id: its }) => its === kit_id)).toBe(true);
    const queued = (await store.webhooks()).map(({ counts }) => counts.accepted);
    expect(queued).toEqual([2, 1]);
  });

  it('are queued for webhooks by asset and severity', async () => {
    const key_id = lab.key.split('_')[1] ?? '';
    const about = { url: 'https://app.example.com/hook', kits: [kit_id], key_id, created_ms: 0 };
    const types = ['alarm', 'asset', 'link', 'battery', 'queue', 'kit.degraded'] as const;
    for (const [webhook_id, filter] of [
      ['all', {}],
      ['of the asset', { assets: [asset_id] }],
      ['grave', { severity_min: 'critical' as const }],
    ] as const)
      await lab.store.addWebhook(registeredWebhook({ ...about, types, webhook_id, ...filter }));
    await motion(true);
    await motion(true);
    await lab.publish(channels.event(asset_id, 'status'), {
      online: true,
      motion_alarm: true,
      ai_alarm: null,
    });
    await link('offline');
    await lab.publish(channels.telemetry, { battery: 5, battery_charging: false });
    const queued = (await lab.store.webhooks()).map(({ webhook_id, counts }) => [
      webhook_id,
      counts.accepted,
    ]);
    expect(Object.fromEntries(queued)).toEqual({ all: 3, 'of the asset': 1, grave: 1 });
  });
});

describe('The fleet socket', () => {
  it('sends the alarms that last, then those that change', async () => {
    await link('offline');
    const alarms = await follow(lab.key);
    expect(alarms()).toMatchObject([{ what: 'link', state: 'open', kit_id }]);
    await motion(true);
    await link('online');
    await eventually('the changes', () => alarms().length === 3);
    expect(alarms().slice(1)).toMatchObject([
      { what: 'motion', state: 'open' },
      { what: 'link', state: 'closed' },
    ]);
    const id = alarms()[1]?.id;
    await ask(`/api/kits/${kit_id}/alarms/${id}`, { method: 'PATCH', body: { acknowledged: true } });
    await eventually('the acknowledgement', () => alarms().at(-1)?.state === 'acknowledged');
  });
});
