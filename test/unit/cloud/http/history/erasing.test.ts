/** Erasures over HTTP: their bound, what they leave, the list of them, and the log. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { channels } from '../../../../../src/contract/topics.ts';
import { texts } from '../../../../../src/cloud/texts.ts';
import { samples } from '../../../../support/contract-samples.ts';
import { type ServiceLab, startServiceLab } from '../../../../support/service/service-lab.ts';

const kit_id = '0f8c1a52-6d1e-4b7a-9c3d-1f2e3d4c5b6a';
const asset_id = '1b671a64-40d5-591e-99b0-da01ff1f3341';
const unknown_id = '3b671a64-40d5-591e-99b0-da01ff1f3343';
const hour_ms = 3_600_000;
const kit = `/kits/${kit_id}`;
const asset = `${kit}/assets/${asset_id}`;
const erasures = z.object({
  erasures: z.array(z.object({ asset_id: z.string().nullable(), before: z.string(), erased_at: z.string() })),
  next: z.string().nullable(),
});
const page = z.object({ messages: z.array(z.object({ channel: z.string(), data: z.unknown() })) });

let lab: ServiceLab;
beforeEach(async () => {
  lab = await startServiceLab(kit_id, { hasHistory: true });
  await lab.publish(channels.state, samples['kitState'] ?? {});
  await lab.publish(channels.asset(asset_id), { ...samples['announcement'], id: asset_id });
  await lab.publish(channels.telemetry, { battery: 80 });
  await lab.publish(channels.feed(asset_id, 'gps'), { lat: 1, lon: 2, alt_m: 3 });
});
afterEach(async () => lab.stop());

async function ask(path: string, options: RequestInit & { key?: string } = {}) {
  const headers = { 'X-API-Key': options.key ?? lab.key, 'Content-Type': 'application/json' };
  const response = await fetch(`${lab.url}/api${path}`, { ...options, headers });
  const text = await response.text();
  const body: unknown = text === '' ? undefined : JSON.parse(text);
  return { status: response.status, body };
}
const erase = async (path: string, before: string | number) =>
  ask(`${path}/history?before=${encodeURIComponent(before)}`, { method: 'DELETE' });
const inForce = async (query = '') => erasures.parse((await ask(`${kit}/history/erasures${query}`)).body);
const messages = async (path: string) => page.parse((await ask(`${path}/history?order=asc`)).body).messages;

describe('a bound ahead of the clock of the service', () => {
  it.each([
    ['an hour', hour_ms],
    ['years', 10 * 365 * 24 * hour_ms],
  ])('of %s erases nothing, and silences neither the kit nor its asset', async (_, ahead_ms) => {
    const before = new Date(Date.now() + ahead_ms).toISOString();
    for (const path of [kit, asset]) {
      const { status, body } = await erase(path, before);
      expect([status, body]).toMatchObject([422, { type: '/problems/out-of-range' }]);
      expect(JSON.stringify(body)).toContain(before);
    }
    await lab.publish(channels.feed(asset_id, 'gps'), { lat: 4, lon: 5, alt_m: 6 });
    expect((await messages(asset)).filter(({ channel }) => channel.endsWith('gps'))).toHaveLength(2);
    expect((await inForce()).erasures).toEqual([]);
  });

  it('of half a minute, as of a clock that is ahead, counts as now: what comes afterwards is kept', async () => {
    expect((await erase(asset, new Date(Date.now() + 30_000).toISOString())).status).toBe(204);
    const [erasure] = (await inForce()).erasures;
    expect(erasure?.before).toBe(erasure?.erased_at);
    await lab.publish(channels.feed(asset_id, 'gps'), { lat: 4, lon: 5, alt_m: 6 });
    expect((await messages(asset)).map(({ data }) => data)).toContainEqual({ lat: 4, lon: 5, alt_m: 6 });
  });

  it.each(['9999999999999999', '11/12/2026', '2026-02-30T00:00:00Z', '2026-11-21T10:00:00', '1795262400'])(
    'is no time: %s',
    async (before) => {
      const { status, body } = await erase(kit, before);
      expect(status).toBe(400);
      expect(JSON.stringify(body)).toContain(`before: \\"${before}\\" is no time`);
    },
  );
});

it('leaves the newest values and the tasks, and later ones replace them', async () => {
  await lab.publish(channels.commands(asset_id), samples['commandList'] ?? {});
  const [command] = z.array(z.object({ name: z.string() })).parse(samples['commandList']?.['commands']);
  const payload = samples['taskDispatch']?.['payload'];
  const sent = await ask(`${asset}/commands/${command?.name}`, {
    method: 'POST',
    body: JSON.stringify({ payload }),
  });
  const { id } = z.object({ id: z.string() }).parse(sent.body);
  expect((await erase(kit, Date.now())).status).toBe(204);
  expect((await ask(kit)).body).toMatchObject({ live: { battery: 80 } });
  expect((await ask(`${asset}/telemetry`)).body).toMatchObject({ gps: { lat: 1 } });
  // The clock of the kit is behind: each report is of before the erasure.
  const said_ms = Date.now() - hour_ms;
  const report = { task_id: id, asset_id, command_name: command?.name, result: {} };
  await lab.publish(channels.task(id), { ...report, status: 'completed', revision: 1 }, { said_ms });
  await lab.publish(channels.telemetry, { battery: 79 }, { said_ms });
  await lab.publish(channels.feed(asset_id, 'gps'), { lat: 9, lon: 5, alt_m: 6 }, { said_ms });
  expect((await ask(`${kit}/tasks/${id}`)).body).toMatchObject({ status: 'completed' });
  expect((await ask(kit)).body).toMatchObject({ live: { battery: 79 } });
  expect((await ask(`${asset}/telemetry`)).body).toMatchObject({ gps: { lat: 9 } });
  expect(await messages(kit)).toEqual([]);
});

it('lists the erasures in force page by page, and logs each with who asked for it', async () => {
  const [first, second] = [Date.now() - 3 * hour_ms, Date.now() - 2 * hour_ms];
  for (const before of [second, first]) expect((await erase(asset, before)).status).toBe(204);
  expect((await erase(kit, first)).status).toBe(204);
  const before = new Date(second).toISOString();
  const one = await inForce('?limit=1');
  expect(one).toMatchObject({ erasures: [{ asset_id: null, before: new Date(first).toISOString() }] });
  const two = await inForce(`?limit=1&cursor=${one.next}`);
  expect(two).toMatchObject({ erasures: [{ asset_id, before }], next: null });
  const logged = lab.log.lines.filter(({ sentence }) => sentence === texts.log_erased);
  expect(
    logged.map(({ facts }) => [
      facts['kit_id'],
      facts['asset_id'],
      facts['before'],
      facts['requested_by_name'],
    ]),
  ).toEqual([
    [kit_id, asset_id, before, 'test'],
    [kit_id, asset_id, new Date(first).toISOString(), 'test'],
    [kit_id, null, new Date(first).toISOString(), 'test'],
  ]);
});

it('shows the erasures of a kit to a key that may read it only', async () => {
  const path = `${kit}/history/erasures`;
  expect((await ask(path, { key: await lab.giveKey({ scopes: ['read'] }) })).status).toBe(200);
  expect((await ask(path, { key: await lab.giveKey({ scopes: ['commands'] }) })).status).toBe(403);
  expect((await ask(path, { key: await lab.giveKey({ kits: [unknown_id] }) })).status).toBe(404);
});

it('is not found for an asset that the kit never had, and found for one that was removed', async () => {
  expect((await erase(`${kit}/assets/${unknown_id}`, Date.now())).status).toBe(404);
  const made = await ask(`${kit}/assets`, {
    method: 'POST',
    body: JSON.stringify({ name: 'T', type: 'truck' }),
  });
  const { id } = z.object({ id: z.string() }).parse(made.body);
  const truck = `${kit}/assets/${id}`;
  await ask(`${truck}/location`, { method: 'POST', body: JSON.stringify({ lat: 1, lon: 1 }) });
  expect((await ask(truck, { method: 'DELETE' })).status).toBe(204);
  expect((await erase(truck, Date.now())).status).toBe(204);
});
