/** Questions that cannot be answered whole are refused, and no answer looks complete that is not. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { channels } from '../../../../../src/contract/topics.ts';
import { samples } from '../../../../support/contract-samples.ts';
import { apiApp } from '../../../../support/service/api-app.ts';
import { type ServiceLab, startServiceLab } from '../../../../support/service/service-lab.ts';

const kit_id = '0f8c1a52-6d1e-4b7a-9c3d-1f2e3d4c5b6a';
const asset_id = '1b671a64-40d5-591e-99b0-da01ff1f3341';
const unknown_id = '3b671a64-40d5-591e-99b0-da01ff1f3343';
const day_ms = 86_400_000;
const kit = `/api/kits/${kit_id}`;
const ago = (days: number): string => new Date(Date.now() - days * day_ms).toISOString();

let lab: ServiceLab;
beforeAll(async () => {
  lab = await startServiceLab(kit_id, { hasHistory: true });
  await lab.publish(channels.state, samples['kitState'] ?? {});
  await lab.publish(channels.asset(asset_id), { ...samples['announcement'], id: asset_id });
  for (const active of [true, false, true]) await lab.publish(channels.event(asset_id, 'motion'), { active });
});
afterAll(async () => lab.stop());

async function ask(path: string, options: RequestInit = {}) {
  const response = await fetch(lab.url + path, { ...options, headers: { 'X-API-Key': lab.key } });
  const text = await response.text();
  const { detail } = z
    .object({ detail: z.string().optional() })
    .catch({})
    .parse(text.startsWith('{') && response.status >= 400 ? JSON.parse(text) : {});
  return { status: response.status, detail, text };
}

/** Every route of the document, with ids of this kit, and the names of its parameters. */
const routes = apiApp().openAPIRegistry.definitions.flatMap((each) => {
  if (each.type !== 'route' || each.route.path === '/api/session') return [];
  const { method, path, request } = each.route;
  const query = request?.query instanceof z.ZodObject ? Object.keys(request.query.shape) : [];
  const filled = path.replace('{kit_id}', kit_id).replace('{asset_id}', asset_id);
  return [[method.toUpperCase(), filled.replaceAll(/\{\w+\}/gu, unknown_id), query] as const];
});

/** List assets is of the interface and ignores what clients add there; its filter is the service's own. */
const isOpen = (query: readonly string[]): boolean => query.every((name) => name === 'degraded');

describe('a query parameter that a route does not have', () => {
  it('is looked for at routes with parameters and without', () => {
    expect(routes.filter(([, , query]) => query.length > 0).length).toBeGreaterThan(9);
    expect(routes.filter(([, , query]) => query.length === 0).length).toBeGreaterThan(20);
  });

  it.each(routes.filter(([, , query]) => !isOpen(query)))(
    'is refused by name: %s %s',
    async (method, path, query) => {
      const { status, detail } = await ask(`${path}?limitt=5`, { method });
      const nearest = query.includes('limit') ? '"limitt"; did you mean "limit"?' : '"limitt"';
      expect([status, detail]).toEqual([400, expect.stringContaining(nearest)]);
    },
  );

  it.each(routes.filter(([method, , query]) => method === 'GET' && isOpen(query)))(
    'is ignored where a route has none, or the filter of assets alone: %s %s',
    async (method, path) => {
      const { status } = await ask(`${path}?_=5`, { method });
      expect(status).toBe((await ask(path, { method })).status);
    },
  );

  // https://github.com/wagtail/wagtail/issues/1671, https://github.com/ckan/ckan/issues/2011, https://github.com/openhab/org.openhab.ui.habpanel/issues/230
  it.each(['_', '_t', '_dc'])('is ignored where it only keeps caches away: %s', async (name) => {
    expect((await ask(`${kit}/history?limit=1&${name}=1441835249458`)).status).toBe(200);
    expect((await ask(`${kit}/history?${name}limit=1`)).status).toBe(400);
  });

  it.each(['From', 'FROM', 'form'])('is named with the one that was meant: %s', async (name) => {
    const { detail } = await ask(`${kit}/events?${name}=${Date.now()}`);
    expect(detail).toContain(`"${name}"; did you mean "from"`);
  });

  it('is refused for HEAD too, and no hindrance for the methods of a path', async () => {
    expect((await ask(`${kit}/history?x=1`, { method: 'HEAD' })).status).toBe(400);
    expect((await ask(`${kit}/history?x=1`, { method: 'OPTIONS' })).status).toBe(204);
  });
});

describe('an export', () => {
  it.each(['ndjson', 'csv'])('as %s of more days than it may have is refused', async (format) => {
    const { status, detail } = await ask(`${kit}/export?format=${format}&from=${ago(59.5)}&to=${ago(0)}`);
    expect([status, detail]).toEqual([422, expect.stringMatching(/60 days.*at most 31/u)]);
  });

  it('of the most days is whole', async () => {
    const { status, text } = await ask(`${kit}/export?from=${ago(30)}`);
    expect([status, text.endsWith('{"next":null}\n')]).toEqual([200, true]);
  });
});

describe('the events of a fleet', () => {
  const events = z.object({ events: z.array(z.unknown()), next: z.string().nullable() });
  const read = async (query: string) => events.parse(JSON.parse((await ask(`/api/events?${query}`)).text));

  it('that were cut have the cursor of the rest', async () => {
    const first = await read('types=motion&limit=2');
    expect([first.events.length, typeof first.next]).toEqual([2, 'string']);
    const second = await read(`types=motion&limit=2&cursor=${first.next}`);
    expect([second.events.length, second.next]).toEqual([1, null]);
    const other = await ask(`/api/events?types=alarm&limit=2&cursor=${first.next}`);
    expect(other.status).toBe(400);
    expect((await ask(`${kit}/events?types=motion&limit=2&cursor=${first.next}`)).status).toBe(400);
  });

  it.each([
    ['of a kit that the key lacks', `kits=${kit_id},${unknown_id}`, 404],
    ['of what is no id', 'kits=kit-1', 400],
    ['of no kit', 'kits=', 400],
    ['of an asset that is no id', 'assets=drone', 400],
    ['of an id in upper case', `kits=${kit_id.toUpperCase()}`, 200],
  ])('%s', async (_, query, status) => {
    expect((await ask(`/api/events?${query}`)).status).toBe(status);
  });
});

describe('an asset that the kit never had', () => {
  it.each([
    `assets/${unknown_id}/history`,
    `assets/${unknown_id}/track`,
    `assets/${unknown_id}/track?format=gpx`,
    `events?assets=${unknown_id}`,
    `series?select=${unknown_id}:gps.lat`,
  ])('is not found: %s', async (path) => {
    expect((await ask(`${kit}/${path}`)).status).toBe(404);
  });

  it.each([
    `assets/${asset_id}/history?feed=none`,
    `assets/${asset_id}/track`,
    `events?assets=${asset_id}&types=none`,
    `series?select=${asset_id}:gps.lat`,
    `events?assets=${unknown_id},${asset_id}&types=motion`,
  ])('is not one of which there is nothing: %s', async (path) => {
    expect((await ask(`${kit}/${path}`)).status).toBe(200);
  });
});

describe('a time', () => {
  it.each([
    ['history', 'from=yesterday 1'],
    ['events', 'to=now-6'],
    ['series', 'select=kit:battery&from=11/12/2026'],
    ['export', 'from=2026-11-21'],
    [`assets/${asset_id}/track`, 'from=1795262400'],
  ])('of %s that is none is refused by name, with what is taken: %s', async (path, query) => {
    const { status, detail } = await ask(`${kit}/${path}?${query.replaceAll(' ', '%20')}`);
    const [, name = '', value = ''] = /(\w+)=([^=]+)$/u.exec(query) ?? [];
    expect([status, detail]).toEqual([
      400,
      expect.stringContaining(`${name}: "${value}" is no time; write ISO`),
    ]);
  });

  it('before the beginning of a span does not end it', async () => {
    const { status, detail } = await ask(`${kit}/history?from=${ago(1)}&to=${ago(2)}`);
    expect([status, detail]).toEqual([400, '"from" is later than "to"']);
  });
});
