/** The history over HTTP: what a kit said is found again, in every form. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { z } from 'zod';
import { channels } from '../../../../../src/contract/topics.ts';
import { type ServiceLab, startServiceLab } from '../../../../support/service/service-lab.ts';

const kit_id = '0f8c1a52-6d1e-4b7a-9c3d-1f2e3d4c5b6a';
const asset_id = '1b671a64-40d5-591e-99b0-da01ff1f3341';
const other_id = '2b671a64-40d5-591e-99b0-da01ff1f3342';
const page = z.object({ messages: z.array(z.looseObject({ seq: z.number() })), next: z.string().nullable() });
const events = z.object({ events: z.array(z.looseObject({ type: z.string() })) });

let lab: ServiceLab;
let key: string;

beforeEach(async () => {
  lab = await startServiceLab(kit_id, { hasHistory: true });
  key = await lab.giveKey();
  for (const id of [asset_id, other_id]) {
    for (const step of [0, 1, 2]) {
      await lab.publish(channels.feed(id, 'gps'), { lat: 47 + step / 100, lon: 8, alt_m: 500 + step });
    }
    await lab.publish(channels.event(id, 'motion'), { active: true });
  }
  await lab.publish(channels.telemetry, { battery: 80 });
});

afterEach(async () => lab.stop());

async function ask(path: string, options: RequestInit = {}): Promise<Response> {
  return fetch(`${lab.url}/api${path}`, { ...options, headers: { 'X-API-Key': key } });
}

it('lists messages by asset, feed and class, page by page', async () => {
  const all = page.parse(await (await ask(`/kits/${kit_id}/history?order=asc`)).json());
  expect(all.messages).toHaveLength(9);
  const ofAsset = page.parse(
    await (await ask(`/kits/${kit_id}/assets/${asset_id}/history?feed=gps&order=asc`)).json(),
  );
  expect(ofAsset.messages.map((message) => message['data'])).toEqual(
    [0, 1, 2].map((step) => ({ lat: 47 + step / 100, lon: 8, alt_m: 500 + step })),
  );
  const first = page.parse(await (await ask(`/kits/${kit_id}/history?order=asc&limit=6`)).json());
  const second = page.parse(
    await (await ask(`/kits/${kit_id}/history?order=asc&limit=6&cursor=${first.next}`)).json(),
  );
  expect([...first.messages, ...second.messages]).toEqual(all.messages);
  expect(second.next).toBeNull();
  expect((await ask(`/kits/${kit_id}/history?order=desc&cursor=${first.next}`)).status).toBe(400);
  expect((await ask(`/kits/${kit_id}/history?from=yesterday`)).status).toBe(400);
});

it('lists events of a kit and of a fleet', async () => {
  const found = events.parse(await (await ask(`/kits/${kit_id}/events?types=motion`)).json());
  expect(found.events.map((event) => event['asset_id'])).toEqual([other_id, asset_id]);
  const fleet = events.parse(await (await ask(`/events?assets=${asset_id}`)).json());
  expect(fleet.events).toEqual([expect.objectContaining({ kit_id, type: 'motion', data: { active: true } })]);
});

it('lists messages and events in the order of arrival, for clients that poll', async () => {
  for (const path of [`/kits/${kit_id}/history`, `/kits/${kit_id}/events`, '/events']) {
    const poll = async (query: string): Promise<Record<string, unknown>> =>
      z.record(z.string(), z.unknown()).parse(await (await ask(`${path}?order=arrival&${query}`)).json());
    const first = await poll('limit=1');
    const second = await poll(`cursor=${String(first['next'])}`);
    expect([first['more'], second['more']]).toEqual([true, false]);
    await lab.publish(
      channels.event(asset_id, 'tamper'),
      { active: true },
      { said_ms: Date.now() - 3 * 86_400_000 },
    );
    const { messages, events: found = messages } = await poll(`cursor=${String(second['next'])}`);
    expect(found).toEqual([expect.objectContaining({ asset_id })]);
    expect(JSON.stringify(found)).toContain('"arrived_at":');
  }
  expect((await ask(`/kits/${kit_id}/history?arrived_from=2026-11-20T10:00:00Z`)).status).toBe(400);
});

it('gives the figures of days of the zone of the kit, once it has one', async () => {
  const figures = async (): Promise<Response> =>
    ask(`/kits/${kit_id}/series?select=kit:battery&bucket_s=86400&tz=kit&shape=rows`);
  expect(((await (await figures()).json()) as { detail: string }).detail).toContain('time_zone');
  const change = async (time_zone: string | null): Promise<Response> =>
    fetch(`${lab.url}/api/kits/${kit_id}`, {
      method: 'PATCH',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify({ time_zone }),
    });
  expect((await change('Europe/Nowhere')).status).toBe(422);
  expect(await (await change('Asia/Kathmandu')).json()).toMatchObject({ time_zone: 'Asia/Kathmandu' });
  const [row] = z.array(z.looseObject({ time: z.string() })).parse(await (await figures()).json());
  // A quarter before six hours ahead of UTC.
  expect(row?.time).toMatch(/T18:15:00\.000Z$/u);
  expect(await (await change(null)).json()).not.toHaveProperty('time_zone');
});

it('lists events of a severity', async () => {
  await lab.publish(channels.event(asset_id, 'tamper'), { active: true });
  const of = async (query: string): Promise<readonly string[]> =>
    events.parse(await (await ask(`/events?${query}`)).json()).events.map(({ type }) => type);
  expect(await of('severity=critical')).toEqual(['tamper']);
  expect(await of('severity=info')).toEqual(['motion', 'motion']);
  expect(await of('severity=info,critical')).toHaveLength(3);
  expect((await ask('/events?severity=grave')).status).toBe(400);
});

it('gives numbers in buckets, as columns, rows and CSV', async () => {
  const select = `${asset_id}:gps.alt_m,kit:battery`;
  const list = z
    .object({ series: z.array(z.looseObject({ max: z.array(z.number()), n: z.array(z.number()) })) })
    .parse(await (await ask(`/kits/${kit_id}/series?select=${select}&bucket_s=86400`)).json());
  expect(list.series.map(({ n, max }) => [n.reduce((sum, each) => sum + each), Math.max(...max)])).toEqual([
    [3, 502],
    [1, 80],
  ]);
  const rows: unknown = await (await ask(`/kits/${kit_id}/series?select=kit:battery&shape=rows`)).json();
  expect(rows).toMatchObject([{ 'kit:battery': 80 }]);
  const csv = await (await ask(`/kits/${kit_id}/series?select=kit:battery&shape=csv`)).text();
  expect(csv.split('\r\n')[0]).toBe('time,kit:battery');
  expect((await ask(`/kits/${kit_id}/series?select=nonsense`)).status).toBe(400);
  const named = `/kits/${kit_id}/series?select=${select}&bucket_s=86400&shape=rows&names=`;
  expect(await (await ask(`${named}altitude,battery`)).json()).toMatchObject([
    { altitude: 501, battery: 80 },
  ]);
  for (const names of ['altitude', 'altitude,altitude', 'altitude,time'])
    expect((await ask(named + names)).status).toBe(400);
});

it('draws a track as GeoJSON, GPX and CSV', async () => {
  const path = `/kits/${kit_id}/assets/${asset_id}/track`;
  expect(await (await ask(path)).json()).toMatchObject({
    type: 'Feature',
    properties: { fixes: 3 },
    geometry: {
      type: 'MultiLineString',
      coordinates: [
        [
          [8, 47, 500],
          [8, 47.01, 501],
          [8, 47.02, 502],
        ],
      ],
    },
  });
  const gpx = await ask(`${path}?format=gpx`);
  expect(gpx.headers.get('content-type')).toBe('application/gpx+xml');
  expect((await gpx.text()).match(/<trkpt/gu)).toHaveLength(3);
  expect((await (await ask(`${path}?format=csv`)).text()).trim().split('\r\n')).toHaveLength(4);
});

it('names what is missing, and why where the kit has reported it', async () => {
  await lab.publish(channels.telemetry, { battery: 70 }, { skipped: 3 });
  await lab.publish(channels.telemetry, { battery: 69 }, { skipped: 1 });
  const drops = [{ epoch: 1, lane: 'feed', reason: 'expired', rows: 3, lo: 10, hi: 12 }];
  await lab.publish(channels.drops, { drops });
  const { epochs } = z
    .object({ epochs: z.array(z.looseObject({ epoch: z.number(), missing: z.array(z.unknown()) })) })
    .parse(await (await ask(`/kits/${kit_id}/completeness`)).json());
  expect(epochs.find(({ epoch }) => epoch === 1)?.missing).toEqual([
    { lo: 10, hi: 12, messages: 3, reasons: ['expired'] },
    { lo: 14, hi: 14, messages: 1, reasons: [] },
  ]);
});

it('exports everything as NDJSON, with its end, and as CSV', async () => {
  const lines = (await (await ask(`/kits/${kit_id}/export`)).text()).trim().split('\n');
  expect(lines).toHaveLength(10);
  expect(lines.at(-1)).toBe('{"next":null}');
  const csv = (await (await ask(`/kits/${kit_id}/export?format=csv&feed=gps`)).text()).trim().split('\r\n');
  expect(csv).toHaveLength(7);
});

it('erases for a key with the scope only, and stores nothing of it that arrives later', async () => {
  const said_ms = Date.now();
  const before = new Date(said_ms + 1_000).toISOString();
  const path = `/kits/${kit_id}/assets/${asset_id}/history`;
  const reader = await lab.giveKey({ scopes: ['read', 'commands'] });
  const refused = await fetch(`${lab.url}/api${path}?before=${before}`, {
    method: 'DELETE',
    headers: { 'X-API-Key': reader },
  });
  expect(refused.status).toBe(403);
  expect((await ask(`${path}?before=${before}`, { method: 'DELETE' })).status).toBe(204);
  await lab.publish(channels.feed(asset_id, 'gps'), { lat: 1, lon: 2, alt_m: 3 }, { said_ms });
  while ((await lab.store.compactHistory(Date.now(), true)) > 0);
  expect(page.parse(await (await ask(path)).json()).messages).toEqual([]);
  const left = page.parse(await (await ask(`/kits/${kit_id}/history`)).json());
  expect(left.messages).toHaveLength(5);
});

it('lets the requests of a dashboard, all at the same time with one key, wait for their turn', async () => {
  const answers = await Promise.all(
    Array.from({ length: 12 }, async (_, n) => {
      const answer = await ask(n % 2 === 0 ? `/kits/${kit_id}/export` : `/kits/${kit_id}/completeness`);
      return { status: answer.status, text: await answer.text() };
    }),
  );
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  expect(answers.filter(({ text }) => text === '')).toEqual([]);
});
