/** The REST side of the service, over real HTTP. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { channels } from '../../../../src/contract/topics.ts';
import { request_limits_default } from '../../../../src/cloud/http/guards.ts';
import { asset_id, kit_id, samples, task_id } from '../../../support/contract-samples.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';

let lab: ServiceLab;
beforeEach(async () => {
  lab = await startServiceLab(kit_id);
});
afterEach(async () => lab.stop());

interface Asked {
  readonly method?: string;
  readonly body?: unknown;
  readonly key?: string | null;
  readonly headers?: Record<string, string>;
}

/** The fields that the tests look into. */
interface Answer {
  readonly id: string;
  readonly name: string;
  readonly online: boolean;
  readonly battery: number;
  readonly status: string;
  readonly detail: string;
  readonly asset_key: string;
  readonly assets: readonly { readonly type: string }[];
  readonly tasks: readonly unknown[];
  readonly errors: readonly { readonly pointer: string }[];
  readonly openapi: string;
  readonly paths: object;
}

async function ask(path: string, { method, body, key = lab.key, headers = {} }: Asked = {}) {
  const response = await fetch(lab.url + path, {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    headers: {
      ...(key === null ? {} : { 'x-api-key': key }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: (text === '' ? undefined : JSON.parse(text)) as Answer,
  };
}

const kit = `/api/kits/${kit_id}`;
const wans = [
  { name: 'Eth3', type: 'ethernet', status: 'offline' },
  { name: 'eth4', type: 'ethernet', status: 'online', latency_ms: 20 },
  { name: 'wwan0', type: 'cellular', status: 'standby', usage: { today_rx_gb: 1, month_rx_gb: null } },
];
const listed = [
  ...wans.slice(0, 2),
  { ...wans[2], usage: { today_rx_gb: 1, today_tx_gb: null, month_rx_gb: null, month_tx_gb: null } },
];

async function reportKit(): Promise<void> {
  await lab.publish(channels.state, samples['kitState'] ?? {});
  await lab.publish(channels.telemetry, { wans, battery: 80, battery_charging: false });
}

async function announceDrone(): Promise<void> {
  await reportKit();
  await lab.publish(channels.asset(asset_id), samples['announcement'] ?? {});
  await lab.publish(channels.commands(asset_id), samples['commandList'] ?? {});
}

describe('kits', () => {
  it('lists the kits of the key with their live telemetry', async () => {
    await reportKit();
    const { status, body } = await ask('/api/kits');
    expect(status).toBe(200);
    expect(body).toMatchObject([{ id: kit_id, online: true, live: { wans: listed, battery: 80 } }]);
  });

  it('answers 503 for an offline kit that never reported, and never caches', async () => {
    await lab.publish(channels.state, { ...samples['kitState'], online: false, reason: 'stopped' });
    const { status, headers, body } = await ask(`${kit}/telemetry`);
    expect([status, headers.get('retry-after'), headers.get('cache-control')]).toEqual([
      503,
      '30',
      'no-store',
    ]);
    expect(body).toMatchObject({ type: '/problems/unavailable', status: 503 });
  });

  it('answers what it knows of an offline kit, and reports that it is offline', async () => {
    await reportKit();
    await lab.publish(channels.state, {
      ...samples['kitState'],
      online: false,
      epoch: 18,
      reason: 'stopped',
    });
    const { status, body } = await ask(`${kit}/telemetry`);
    expect([status, body.online, body.battery]).toEqual([200, false, 80]);
  });

  it.each([
    ['wwan0', 'wwan0'],
    ['ETH3', 'Eth3'],
    ['Cellular', 'wwan0'],
    ['ethernet', 'eth4'],
  ])('finds the link "%s" by name or type, whatever the case', async (wanted, found) => {
    await reportKit();
    expect((await ask(`${kit}/links/${wanted}`)).body.name).toBe(found);
  });

  it('names the links that there are when there is no such one', async () => {
    await reportKit();
    const { status, body } = await ask(`${kit}/links/eth9`);
    expect(status).toBe(404);
    expect(body.detail).toContain('Eth3, eth4, wwan0');
  });

  it.each(['location', 'gateway', 'speedtest'])(
    'answers 404 for %s while it was not reported',
    async (part) => {
      await reportKit();
      expect((await ask(`${kit}/${part}`)).status).toBe(404);
    },
  );
});

describe('assets', () => {
  it('registers a partner asset, takes its location and shows both at once', async () => {
    await announceDrone();
    const created = await ask(`${kit}/assets`, {
      body: { name: 'Truck', type: 'vehicle', metadata: { crew: 2 } },
    });
    expect(created.status).toBe(201);
    expect(created.body).toMatchObject({
      kit_id,
      protocol: 'partner',
      status: 'online',
      metadata: { crew: 2 },
    });
    expect(created.body.asset_key).toBe(`${kit_id}:partner:${created.body.id}`);
    const place = created.headers.get('location') ?? '';
    const fix = { lat: 47.4, lon: 8.5, alt_m: 450, bearing: 90, speed_mps: 5 };
    const pushed = await ask(`${place}/location`, { body: fix });
    expect([pushed.status, pushed.body]).toEqual([204, undefined]);
    expect((await ask(`${place}/telemetry`)).body).toMatchObject({ gps: fix });
    expect((await ask(place)).body).toMatchObject({ lat: 47.4, lon: 8.5 });
    const { assets } = (await ask(`${kit}/assets`)).body;
    expect(assets.map(({ type }) => type)).toEqual(['drone', 'vehicle']);
  });

  it('names each fault of a body with its place', async () => {
    await reportKit();
    const { status, headers, body } = await ask(`${kit}/assets`, { body: { type: '', colour: 1 } });
    expect(status).toBe(422);
    expect(headers.get('content-type')).toContain('application/problem+json');
    const pointers = body.errors.map(({ pointer }) => pointer);
    expect(pointers).toEqual(expect.arrayContaining(['#/name', '#/type']));
  });

  it('takes no location for an asset of the kit, and removes none', async () => {
    await announceDrone();
    expect((await ask(`${kit}/assets/${asset_id}/location`, { body: { lat: 1, lon: 1 } })).status).toBe(409);
    expect((await ask(`${kit}/assets/${asset_id}`, { method: 'DELETE' })).status).toBe(409);
  });
});

describe('tasks', () => {
  const commandPath = (name: string): string => `${kit}/assets/${asset_id}/commands/${name}`;
  const name = ((samples['commandList']?.['commands'] ?? []) as { name: string }[])[0]?.name ?? '';

  it('makes a pending task, hands it to the kit and shows what the kit reports of it', async () => {
    await announceDrone();
    const { body: list } = await ask(`${kit}/assets/${asset_id}/commands`);
    expect(list).toEqual({ commands: samples['commandList']?.['commands'] });
    const payload = (samples['taskDispatch']?.['payload'] ?? {}) as object;
    const sent = await ask(commandPath(name), { body: { payload } });
    expect(sent.status).toBe(202);
    expect(sent.body).toMatchObject({ status: 'pending', result: {}, payload, command_name: name });
    expect(lab.dispatched).toMatchObject([{ task_id: sent.body.id, asset_id, command_name: name }]);
    const report = { task_id: sent.body.id, asset_id, command_name: name, result: {} };
    await lab.publish(channels.task(sent.body.id), { ...report, status: 'running', revision: 1 });
    expect((await ask(sent.headers.get('location') ?? '')).body.status).toBe('running');
    const failed = { ...report, status: 'failed', revision: 2, result: { error: 'Arm: compass' } };
    await lab.publish(channels.task(sent.body.id), failed);
    expect((await ask(`${kit}/tasks?status=failed`)).body.tasks).toMatchObject([
      { result: { error: 'Arm: compass' } },
    ]);
  });

  it('refuses an unknown command and names those that there are', async () => {
    await announceDrone();
    const { status, body } = await ask(commandPath('explode'), { body: {} });
    expect(status).toBe(404);
    expect(body.detail).toContain(name);
  });

  it('fails a task that cannot be handed to the broker, and does not try again', async () => {
    await announceDrone();
    lab.broker.fault = 'the broker cannot be reached';
    const payload = (samples['taskDispatch']?.['payload'] ?? {}) as object;
    const { body } = await ask(commandPath(name), { body: { payload } });
    await expect
      .poll(async () => (await ask(`${kit}/tasks/${body.id}`)).body)
      .toMatchObject({
        status: 'failed',
        result: { error: 'not sent to the kit: the broker cannot be reached' },
      });
  });
});

describe('keys and limits', () => {
  it.each([
    ['without a key', null],
    ['with a wrong key', 'kc_000000000000_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'],
    ['with garbage', 'x'],
  ])('answers 401 %s', async (_, key) => {
    expect((await ask('/api/kits', { key })).status).toBe(401);
  });

  it('shows a key nothing of the kits of another key', async () => {
    await announceDrone();
    const stranger = await lab.giveKey({ kits: [task_id] });
    expect((await ask('/api/kits', { key: stranger })).body).toMatchObject([{ id: task_id, live: null }]);
    for (const path of ['', '/telemetry', '/links', '/assets', `/assets/${asset_id}`, '/tasks', '/queue']) {
      expect((await ask(kit + path, { key: stranger })).status).toBe(404);
    }
  });

  it('lets a key that may only read change nothing', async () => {
    await announceDrone();
    const reader = await lab.giveKey({ scopes: ['read'] });
    expect((await ask(`${kit}/assets`, { key: reader })).status).toBe(200);
    const body = { name: 'x', type: 'y' };
    expect((await ask(`${kit}/assets`, { key: reader, body })).status).toBe(403);
  });

  it.each([
    [{ body: '{"name":' }, 400],
    [{ body: 'name=x', headers: { 'content-type': 'text/plain' } }, 415],
    [{ body: { name: 'x'.repeat(70_000), type: 'y' } }, 413],
  ])('answers %j with %i', async (asked, status) => {
    await reportKit();
    expect((await ask(`${kit}/assets`, asked)).status).toBe(status);
  });

  it('bounds a body of unknown length, and takes a short one', async () => {
    await reportKit();
    // `fetch` of Node asks for it, and its types do not know it.
    const streamed = { duplex: 'half' };
    const stream = (text: string) => new Blob([text]).stream();
    const post = async (text: string) =>
      fetch(`${lab.url}${kit}/assets`, {
        method: 'POST',
        headers: { 'x-api-key': lab.key, 'content-type': 'application/json' },
        body: stream(text),
        ...streamed,
      });
    expect((await post(JSON.stringify({ name: 'x', type: 'y' }))).status).toBe(201);
    expect((await post(JSON.stringify({ name: 'x'.repeat(70_000), type: 'y' }))).status).toBe(413);
  });

  it('slows down a key that asks too fast, and reports when to ask again', async () => {
    const other = await startServiceLab(kit_id, { limits: { ...request_limits_default, reads_per_s: 0.5 } });
    try {
      const answers = await Promise.all(
        Array.from({ length: 30 }, async () =>
          fetch(`${other.url}/api/kits`, { headers: { 'x-api-key': other.key } }),
        ),
      );
      const refused = answers.filter(({ status }) => status === 429);
      expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(10);
      expect(refused.length).toBeGreaterThan(0);
      expect(Number(refused[0]?.headers.get('retry-after'))).toBeGreaterThan(0);
    } finally {
      await other.stop();
    }
  });

  it('describes every route of the server', async () => {
    const { body } = await ask('/openapi.json', { key: null });
    expect(body.openapi).toBe('3.1.0');
    expect(Object.keys(body.paths).length).toBeGreaterThanOrEqual(18);
  });
});
