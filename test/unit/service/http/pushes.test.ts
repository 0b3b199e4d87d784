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

  it('takes fixes of 15 drones at 1 Hz on one key, beside a registration', async () => {
    const ids = await register(15);
    const statuses: number[] = [];
    for (let second = 0; second < 4; second += 1) {
      const pushed = ids.map(async (id, n) => {
        const { status } = await post(`${kit}/assets/${id}/location`, {
          lat: 47 + second / 1_000,
          lon: 8 + n / 100,
        });
        statuses.push(status);
      });
      await Promise.all(pushed);
    }
    expect(statuses).toEqual(Array.from({ length: 60 }, () => 204));
    const [id = ''] = ids;
    expect(await lab.store.asset(kit_id, id)).toMatchObject({ lat: 47.003, lon: 8 });
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

describe('Limits of requests', () => {
  it('are those of the configuration', async () => {
    lab = await startServiceLab(kit_id, {
      limits: { reads_per_s: 1, changes_per_s: 100, fixes_per_s: 0.5 },
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
