/** How long the history is kept, over HTTP: read, set, and obeyed. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { dayOf, history_classes } from '../../../../../src/cloud/history/message.ts';
import { gatewayRetention } from '../../../../../src/cloud/history/retention.ts';
import { retentionSetting } from '../../../../../src/cloud/history/retention.ts';
import { channels } from '../../../../../src/contract/topics.ts';
import { type ServiceLab, startServiceLab } from '../../../../support/service/service-lab.ts';

const kit_id = '0f8c1a52-6d1e-4b7a-9c3d-1f2e3d4c5b6a';
const asset_id = '1b671a64-40d5-591e-99b0-da01ff1f3341';
const day_ms = 86_400_000;
const path = '/api/history/retention';
const wanted = { days: { event: 365, position: 3, feed: 7, kit: 30 }, figures_days: 100, kit_max_mb: 50 };

let lab: ServiceLab;

beforeEach(async () => {
  lab = await startServiceLab(kit_id, { hasHistory: true });
});

afterEach(async () => lab.stop());

async function ask(key: string, body?: unknown): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${lab.url}${path}`, {
    headers: { 'X-API-Key': key, 'content-type': 'application/json' },
    ...(body !== undefined && { method: 'PUT', body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.json() };
}

it('returns the configuration, and what a client has set in its place', async () => {
  const key = await lab.giveKey({ kits: '*' });
  const days = { event: 30, position: 30, feed: 30, kit: 30 };
  expect(await ask(key)).toEqual({
    status: 200,
    body: { days, figures_days: 30, kit_max_mb: 200, source: 'configuration' },
  });
  expect(await ask(key, wanted)).toEqual({ status: 200, body: { ...wanted, source: 'api' } });
  expect(await ask(lab.key)).toEqual({ status: 200, body: { ...wanted, source: 'api' } });
});

it('lowers the configured size of a kit, and never raises it', async () => {
  const key = await lab.giveKey({ kits: '*' });
  for (const kit_max_mb of [10_000, null])
    expect(await ask(key, { ...wanted, kit_max_mb })).toMatchObject({ body: { kit_max_mb: 200 } });
});

it('refuses a key without the scope, a key for single kits, and values out of range', async () => {
  const all = await lab.giveKey({ kits: '*' });
  expect((await ask(lab.key, wanted)).status).toBe(403);
  expect((await ask(await lab.giveKey({ kits: '*', scopes: ['read'] }), wanted)).status).toBe(403);
  for (const faulty of [
    { ...wanted, figures_days: 0 },
    { ...wanted, days: { ...wanted.days, event: 4_001 } },
    { ...wanted, days: { event: 1 } },
    { ...wanted, kits: [] },
    { ...wanted, kit_max_mb: 0 },
  ])
    expect((await ask(all, faulty)).status).toBe(422);
  expect(await ask(all)).toMatchObject({ body: { source: 'configuration' } });
});

it('deletes what is older than a client has set', async () => {
  const now_ms = Date.now();
  const gps = channels.feed(asset_id, 'gps');
  for (const days of [1, 2, 5, 6])
    await lab.publish(gps, { lat: 47, lon: 8, alt_m: days }, { said_ms: now_ms - days * day_ms });
  while ((await lab.store.compactHistory(now_ms, true)) > 0);
  await ask(await lab.giveKey({ kits: '*' }), wanted);
  const setting = retentionSetting(lab.store, gatewayRetention({ days: 30, max_mb: 200 }));
  const { retention } = await setting.read();
  while ((await lab.store.trimHistory(retention, now_ms)) > 0);
  const left = await lab.store.historySegments({
    kit_id,
    classes: history_classes,
    from_ms: 0,
    to_ms: now_ms,
    order: 'asc',
    limit: 10,
  });
  expect(left.map(({ day }) => day)).toEqual([dayOf(now_ms - 2 * day_ms), dayOf(now_ms - day_ms)]);
});

it('answers 404 where no history is kept', async () => {
  await lab.stop();
  lab = await startServiceLab(kit_id);
  expect((await ask(lab.key)).status).toBe(404);
});
