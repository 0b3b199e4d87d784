/** Push Location at the rate of drones: one key pushes for many assets, one by one and in batches. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { kit_id, task_id } from '../../../support/contract-samples.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';

let lab: ServiceLab;
afterEach(async () => lab.stop());

const kit = `/api/kits/${kit_id}`;

async function post(path: string, body: object): Promise<Response> {
  return fetch(lab.url + path, {
    method: 'POST',
    headers: { 'x-api-key': lab.key, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
}

async function register(count: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const answer = await post(`${kit}/assets`, { name: `Drone ${n}`, type: 'drone' });
    const made = (await answer.json()) as { readonly id: string };
    ids.push(made.id);
  }
  return ids;
}

describe('Push Location', () => {
  beforeEach(async () => {
    lab = await startServiceLab(kit_id);
  });

  it('takes many fixes in one request, the last one of an asset being the newest', async () => {
    const [one = '', two = ''] = await register(2);
    const locations = [
      { asset_id: one, lat: 1, lon: 1, alt_m: 100 },
      { asset_id: two.toUpperCase(), lat: 2, lon: 2 },
      { asset_id: one, lat: 3, lon: 3, bearing: 90 },
    ];
    const answer = await post(`${kit}/locations`, { locations });
    expect([answer.status, await answer.text()]).toEqual([204, '']);
    // A fix without an altitude keeps the known one for the asset.
    expect(await lab.store.asset(kit_id, one)).toMatchObject({ lat: 3, lon: 3, alt_m: 100 });
    expect(await lab.store.feeds(kit_id, one)).toMatchObject([
      { feed: 'gps', data: { lat: 3, alt_m: null } },
    ]);
    expect(await lab.store.asset(kit_id, two)).toMatchObject({ lat: 2, lon: 2 });
  });

  it('stores no fix of a batch with an unknown asset, and names its place', async () => {
    const [one = ''] = await register(1);
    const locations = [
      { asset_id: one, lat: 1, lon: 1 },
      { asset_id: task_id, lat: 2, lon: 2 },
    ];
    const answer = await post(`${kit}/locations`, { locations });
    expect(answer.status).toBe(422);
    expect(await answer.json()).toMatchObject({ errors: [{ pointer: '#/locations/1/asset_id' }] });
    expect(await lab.store.asset(kit_id, one)).toMatchObject({ lat: null });
  });

  it.each([[[]], [Array.from({ length: 257 }, () => ({ asset_id: task_id, lat: 1, lon: 1 }))]])(
    'refuses a batch without fixes or with more than 256',
    async (locations) => {
      expect((await post(`${kit}/locations`, { locations })).status).toBe(422);
    },
  );
});

describe('The timestamp of a fix', () => {
  beforeEach(async () => {
    lab = await startServiceLab(kit_id);
  });

  const before = (ms: number): string => new Date(Date.now() - ms).toISOString();
  const historyOf = async (id: string): Promise<unknown> => {
    const headers = { 'x-api-key': lab.key };
    return (await fetch(`${lab.url}${kit}/assets/${id}/history?feed=gps&order=asc`, { headers })).json();
  };

  it('is the time of the position, and an older fix goes to the history only', async () => {
    const [id = ''] = await register(1);
    const seen: unknown[] = [];
    const end = new AbortController();
    lab.changes.subscribe(kit_id, (changes) => seen.push(...changes.map(({ kind }) => kind)), end.signal);
    const [newer, older] = [before(10_000), before(3_600_000)];
    expect((await post(`${kit}/assets/${id}/location`, { lat: 2, lon: 2, timestamp: newer })).status).toBe(
      204,
    );
    expect((await post(`${kit}/assets/${id}/location`, { lat: 1, lon: 1, timestamp: older })).status).toBe(
      204,
    );
    end.abort();
    expect(seen).toEqual(['feed', 'asset']);
    expect(await lab.store.asset(kit_id, id)).toMatchObject({ lat: 2, last_seen_at: newer });
    expect(await lab.store.feeds(kit_id, id)).toMatchObject([{ data: { lat: 2, timestamp: newer } }]);
    expect(await historyOf(id)).toMatchObject({
      messages: [
        { time: older, data: { lat: 1, timestamp: older } },
        { time: newer, data: { lat: 2 } },
      ],
    });
    await post(`${kit}/assets/${id}/location`, { lat: 3, lon: 3 });
    expect(await lab.store.asset(kit_id, id)).toMatchObject({ lat: 3 });
  });

  it('decides in a batch, whatever the order', async () => {
    const [id = ''] = await register(1);
    const locations = [
      { asset_id: id, lat: 2, lon: 2, timestamp: before(1_000).replace('Z', '+00:00') },
      { asset_id: id, lat: 1, lon: 1, timestamp: before(2_000) },
    ];
    expect((await post(`${kit}/locations`, { locations })).status).toBe(204);
    expect(await lab.store.asset(kit_id, id)).toMatchObject({ lat: 2 });
    expect(await historyOf(id)).toMatchObject({ messages: [{ data: { lat: 1 } }, { data: { lat: 2 } }] });
  });

  it('counts as now when it is a little ahead, so that it blocks no later fix', async () => {
    const [id = ''] = await register(1);
    const timestamp = before(-30_000);
    expect((await post(`${kit}/assets/${id}/location`, { lat: 1, lon: 1, timestamp })).status).toBe(204);
    await post(`${kit}/assets/${id}/location`, { lat: 2, lon: 2 });
    expect(await lab.store.asset(kit_id, id)).toMatchObject({ lat: 2 });
  });

  it.each([
    ['more than a minute ahead', () => before(-90_000)],
    ['older than a day', () => before(86_400_000 + 60_000)],
    ['no time', () => 'now'],
  ])('that is %s is refused with its place', async (_, timestampOf) => {
    const [id = ''] = await register(1);
    const fix = { lat: 1, lon: 1, timestamp: timestampOf() };
    const one = await post(`${kit}/assets/${id}/location`, fix);
    expect([one.status, await one.json()]).toMatchObject([422, { errors: [{ pointer: '#/timestamp' }] }]);
    const locations = [
      { asset_id: id, lat: 1, lon: 1 },
      { ...fix, asset_id: id },
    ];
    const many = await post(`${kit}/locations`, { locations });
    const pointer = '#/locations/1/timestamp';
    expect([many.status, await many.json()]).toMatchObject([422, { errors: [{ pointer }] }]);
    expect(await lab.store.asset(kit_id, id)).toMatchObject({ lat: null });
  });
});

describe('Limits of requests', () => {
  it('are those of the configuration', async () => {
    lab = await startServiceLab(kit_id, {
      // Those of 20 s at once.
      limits: { reads_per_s: 0.1, changes_per_s: 100, fixes_per_s: 0.05, map_per_s: 100 },
    });
    const [id = ''] = await register(1);
    const push = async (): Promise<number> =>
      (await post(`${kit}/assets/${id}/location`, { lat: 1, lon: 1 })).status;
    expect([await push(), await push()]).toEqual([204, 429]);
    const read = async (): Promise<number> =>
      (await fetch(`${lab.url}/api/kits`, { headers: { 'x-api-key': lab.key } })).status;
    expect([await read(), await read(), await read()]).toEqual([200, 200, 429]);
  });
});
