/** The REST side of the service, over real HTTP. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { channels } from '../../../../src/contract/topics.ts';
import { asset_id, kit_id, samples } from '../../../support/contract-samples.ts';
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

  it.each(['location', 'gateway', 'speedtest'])(
    'answers 404 for %s while it was not reported',
    async (part) => {
      await reportKit();
      expect((await ask(`${kit}/${part}`)).status).toBe(404);
    },
  );
});

describe('assets', () => {
  it('names each fault of a body with its place', async () => {
    await reportKit();
    const { status, headers, body } = await ask(`${kit}/assets`, { body: { type: '', colour: 1 } });
    expect(status).toBe(422);
    expect(headers.get('content-type')).toContain('application/problem+json');
    const pointers = body.errors.map(({ pointer }) => pointer);
    expect(pointers).toEqual(expect.arrayContaining(['#/name', '#/type']));
  });

  it('shows what an asset does not deliver while it is online, and lists those alone that fail', async () => {
    await reportKit();
    const fails = { state: 'fails', reason: 'no room for a subscription', next_try_at: null };
    const without = { state: 'not_offered', reason: null, next_try_at: null };
    const announced = { ...samples['announcement'], health: { events: fails, still: without } };
    await lab.publish(channels.asset(asset_id), announced);
    const asset = `${kit}/assets/${asset_id}`;
    expect((await ask(asset)).body).toMatchObject({
      status: 'online',
      health: { events: fails, still: without },
    });
    const listed = async (query: string) => (await ask(`${kit}/assets${query}`)).body.assets.length;
    expect(await Promise.all(['', '?degraded=true', '?degraded=false'].map(listed))).toEqual([1, 1, 0]);
    expect((await ask(`${kit}/assets?degraded=yes`)).status).toBe(400);
    expect((await ask(`${kit}/assets?degarded=true`)).status).toBe(400);
    // The interface has no parameters there, and clients add some against caches.
    expect((await ask(`${kit}/assets?x=1`)).status).toBe(200);
    await lab.publish(channels.event(asset_id, 'asset_status'), { status: 'offline', reason: 'silent' });
    expect((await ask(asset)).body).not.toHaveProperty('health');
    expect(await Promise.all(['?degraded=true', '?degraded=false'].map(listed))).toEqual([0, 1]);
    // What a later minor version adds is left out, and the rest is taken.
    const later = { ...announced, health: { events: { ...without, since: 'x' }, sound: fails } };
    await lab.publish(channels.asset(asset_id), later);
    expect((await ask(asset)).body).toMatchObject({ health: { events: without } });
    // Kits of before report none.
    await lab.publish(channels.asset(asset_id), samples['announcement'] ?? {});
    expect((await ask(asset)).body).not.toHaveProperty('health');
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

  it('describes every route of the server', async () => {
    const { body } = await ask('/openapi.json', { key: null });
    expect(body.openapi).toBe('3.1.0');
    expect(Object.keys(body.paths).length).toBeGreaterThanOrEqual(18);
  });
});
