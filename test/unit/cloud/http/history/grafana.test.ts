/** The dashboard for Grafana: the service accepts each of its queries, and each gives rows with the columns that the panel shows. */
import { readFile } from 'node:fs/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { parse } from 'yaml';
import { service } from '../../../../../systemd/package/packages.ts';
import { z } from 'zod';
import { channels } from '../../../../../src/contract/topics.ts';
import { asset_id, samples } from '../../../../support/contract-samples.ts';
import { type ServiceLab, startServiceLab } from '../../../../support/service/service-lab.ts';

const directory = new URL('../../../../../systemd/grafana/', import.meta.url);
const kit_id = '0f8c1a52-6d1e-4b7a-9c3d-1f2e3d4c5b6a';
const hour_ms = 3_600_000;

const target = z.object({
  type: z.enum(['json', 'csv']),
  url: z.string(),
  url_options: z.object({ params: z.array(z.object({ key: z.string(), value: z.string() })) }),
  root_selector: z.string(),
  columns: z.array(z.object({ selector: z.string(), type: z.string() })).min(1),
});
type Target = z.output<typeof target>;
const dashboard = z.object({
  templating: z.object({
    list: z.array(z.object({ name: z.string(), query: z.object({ infinityQuery: target }) })),
  }),
  panels: z.array(z.object({ title: z.string(), targets: z.array(target).length(1) })).min(8),
});
const datasource = z.object({
  datasources: z.tuple([
    z.object({
      uid: z.string(),
      url: z.string(),
      jsonData: z.object({ allowedHosts: z.array(z.string()), httpHeaderName1: z.string() }),
      secureJsonData: z.object({ httpHeaderValue1: z.string() }),
    }),
  ]),
});

let lab: ServiceLab;
let key: string;

beforeEach(async () => {
  lab = await startServiceLab(kit_id, { hasHistory: true });
  key = await lab.giveKey({ scopes: ['read'] });
  await lab.publish(channels.asset(asset_id), samples['announcement'] ?? {});
  await lab.publish(channels.telemetry, { battery: 80 });
  const fix = { lat: 47, lon: 8, alt_m: 500, ground_speed: 3, heading: 90 };
  await lab.publish(channels.feed(asset_id, 'gps'), fix);
  await lab.publish(channels.feed(asset_id, 'battery'), { voltage: 24, current: 10, remaining_pct: 70 });
  await lab.publish(channels.event(asset_id, 'motion'), { active: true });
});

afterEach(async () => lab.stop());

async function read(name: string): Promise<string> {
  return readFile(new URL(name, directory), 'utf8');
}

/** The rows that the data source takes from the answer. */
async function rowsOf({ type, url, url_options, root_selector, columns }: Target, headers: HeadersInit) {
  const variables: Readonly<Record<string, string>> = {
    kit: kit_id,
    asset: asset_id,
    __from: String(Date.now() - hour_ms),
    __to: String(Date.now() + hour_ms),
  };
  const filled = (text: string): string =>
    text.replaceAll(/\$\{(\w+)\}/gu, (_, name: string) => variables[name] ?? '');
  const query = new URLSearchParams(url_options.params.map((each) => [each.key, filled(each.value)]));
  const answer = await fetch(`${lab.url}${filled(url)}?${query.toString()}`, { headers });
  expect({ url, status: answer.status }).toEqual({ url, status: 200 });
  if (type === 'csv') {
    const [head = '', ...lines] = (await answer.text()).split('\r\n').filter((line) => line !== '');
    return lines.map((line) =>
      Object.fromEntries(head.split(',').map((name, at) => [name, line.split(',')[at]])),
    );
  }
  const body: unknown = await answer.json();
  const rows = z.array(z.looseObject({}));
  return rows
    .parse(root_selector === '' ? body : z.looseObject({}).parse(body)[root_selector])
    .map((row) => Object.fromEntries(columns.map(({ selector }) => [selector, valueAt(row, selector)])));
}

function valueAt(row: unknown, selector: string): unknown {
  let value = row;
  for (const name of selector.split('.'))
    value = typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
  return value;
}

it('asks the service for rows that have every column of its panels and variables', async () => {
  const { panels, templating } = dashboard.parse(JSON.parse(await read('fleet-dashboard.json')));
  const asked = [
    ...panels.map(({ title, targets }) => [title, targets[0]] as const),
    ...templating.list.map(({ name, query }) => [name, query.infinityQuery] as const),
  ];
  // All at the same time, as a browser does that opens the dashboard.
  const found = await Promise.all(
    asked.map(async ([title, its]) => {
      const rows = its ? await rowsOf(its, { 'X-API-Key': key }) : [];
      const isSeen = ({ selector }: { readonly selector: string }): boolean =>
        rows.some((row) => row[selector] !== undefined && row[selector] !== null && row[selector] !== '');
      return { title, rows: rows.length > 0, without: its?.columns.filter((column) => !isSeen(column)) };
    }),
  );
  expect(found).toEqual(asked.map(([title]) => ({ title, rows: true, without: [] })));
});

it('is provisioned with a data source that sends the key to the service alone, and a provider of its file', async () => {
  const text = await read('datasource.yaml');
  const [{ uid, url, jsonData, secureJsonData }] = datasource.parse(parse(text)).datasources;
  expect(jsonData).toEqual({ allowedHosts: [url], httpHeaderName1: 'X-API-Key' });
  expect(secureJsonData.httpHeaderValue1).toBe('$KIT_CONNECTOR_API_KEY');
  const uids = [...(await read('fleet-dashboard.json')).matchAll(/"uid": "([^"]+)"/gu)].map(
    ([, found]) => found,
  );
  expect(new Set(uids)).toEqual(new Set([uid, 'kit-connector-history']));
  const providers = z.object({ providers: z.array(z.object({ options: z.object({ path: z.string() }) })) });
  const [provider] = providers.parse(parse(await read('dashboards.yaml'))).providers;
  const placed = service.files.map(([, path]) => path);
  expect(placed).toContain(`${provider?.options.path.slice(1)}/fleet-dashboard.json`);
});
