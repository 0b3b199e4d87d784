/** What Prometheus sees of a fleet at its service, and that the alerts ask for nothing else. */
import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { unreportedKit } from '../../../src/cloud/api/views.ts';
import { kitMetrics } from '../../../src/cloud/kit-metrics.ts';
import { openServiceMetrics } from '../../../src/cloud/metrics.ts';
import type { StoredKit } from '../../../src/cloud/stored/stored.ts';

const now_ms = Date.parse('2026-11-29T12:00:00Z');
const kit_id = '3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10';
const wans = [
  { name: 'sat0', type: 'satellite', status: 'online', latency_ms: 41.5, packet_loss_pct: 0.5 },
  { name: 'ww"an', type: 'cellular', status: 'offline' },
];
const loss = { time_ms: now_ms, since_ms: now_ms - 1_000, what: 'feed' };
const kit: StoredKit = {
  ...unreportedKit(kit_id),
  state: {
    online: true,
    name: 'Kit 7',
    reason: null,
    software: '0.2.0',
    outbox: { rows: 12, bytes: 3_400, oldest: '2026-11-29T11:00:00.000Z' },
    degraded: ['the disk is full: 3 MB free; free some space'],
    epoch: 1,
  } as unknown as NonNullable<StoredKit['state']>,
  heard_ms: now_ms - 500,
  parts: {
    wans: { time_ms: now_ms, data: wans },
    battery: { time_ms: now_ms, data: 78 },
  },
  counts: { received: 900, duplicates: 2, missing: 3, dropped: 40, refused: 0 },
  losses: {
    refused: [],
    dropped: [
      { ...loss, reason: 'thinned', count: 30 },
      { ...loss, what: 'kit', reason: 'thinned', count: 9 },
      { ...loss, reason: 'of a later release', count: 1 },
    ],
  },
};

const samples = (text: string): readonly string[] =>
  text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.replace(`kit="${kit_id}"`, 'kit'));

it('shows what is known of a kit, and nothing of what is not', async () => {
  expect(samples(await kitMetrics([kit], now_ms))).toEqual([
    'kit_online{kit} 1',
    'kit_last_seen_timestamp_seconds{kit} 1795953599.5',
    'kit_battery_percent{kit} 78',
    'kit_degraded_reasons{kit} 1',
    'kit_buffer_messages{kit} 12',
    'kit_buffer_bytes{kit} 3400',
    'kit_buffer_oldest_timestamp_seconds{kit} 1795950000',
    'kit_messages_received_total{kit} 900',
    'kit_messages_missing{kit} 3',
    'kit_messages_dropped{kit,reason="thinned"} 39',
    'kit_messages_dropped{kit,reason="other"} 1',
    'kit_link_up{kit,link="sat0"} 1',
    String.raw`kit_link_up{kit,link="ww\"an"} 0`,
    'kit_link_in_use{kit,link="sat0"} 1',
    String.raw`kit_link_in_use{kit,link="ww\"an"} 0`,
    'kit_link_latency_seconds{kit,link="sat0"} 0.0415',
    'kit_link_packet_loss_percent{kit,link="sat0"} 0.5',
    'kits_not_shown 0',
  ]);
  const away = { ...kit, state: { ...kit.state, online: false } as NonNullable<StoredKit['state']> };
  expect(samples(await kitMetrics([away], now_ms)).join(' ')).not.toMatch(/kit_link|degraded/u);
  expect(samples(await kitMetrics([unreportedKit(kit_id)], now_ms))).toEqual([
    'kit_online{kit} 0',
    'kit_messages_received_total{kit} 0',
    'kit_messages_missing{kit} 0',
    'kits_not_shown 0',
  ]);
});

it('shows a limited number of kits, those that were heard last', { tags: 'long' }, async () => {
  const many = Array.from({ length: 5_003 }, (_, n) => ({
    ...kit,
    kit_id: `kit-${n}`,
    heard_ms: now_ms + n,
  }));
  const text = await kitMetrics(many, now_ms);
  expect(text).toContain('kits_not_shown 3\n');
  expect(text.match(/^kit_online\{/gmu)).toHaveLength(5_000);
  expect(text).not.toContain('kit="kit-2"');
});

const dashboard = z.object({
  panels: z.array(z.object({ targets: z.array(z.object({ expr: z.string() })) })),
  templating: z.object({
    list: z.array(z.object({ query: z.union([z.string(), z.object({ query: z.string() })]) })),
  }),
});
const rules = z.object({
  groups: z.array(z.object({ rules: z.array(z.object({ expr: z.string() })) })),
});

it('has every figure that alerts and dashboard of services and kits query, and none that the dashboard leaves out', async () => {
  const read = async (name: string) => readFile(new URL(`../../../systemd/${name}`, import.meta.url), 'utf8');
  const alerts = rules
    .parse(parse(await read('alerts.yaml')))
    .groups.flatMap((group) => group.rules)
    .map(({ expr }) => expr);
  const { panels, templating } = dashboard.parse(JSON.parse(await read('grafana/service-dashboard.json')));
  const shown = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
  const variables = templating.list.flatMap(({ query }) => (typeof query === 'string' ? [] : [query.query]));
  const namesIn = (texts: readonly string[]): ReadonlySet<string> =>
    new Set(texts.flatMap((text) => text.match(/\bkit_(?!connector_)\w+/gu) ?? []));
  const store = { kits: async () => [], webhooks: async () => [], fileBytes: async () => 0 };
  const figures =
    (await openServiceMetrics('1').scrape(store, undefined)) + (await kitMetrics([kit], now_ms));
  const types = new Set(Array.from(figures.matchAll(/^# TYPE (kit_\w+) /gmu), ([, name = '']) => name));
  const base = (name: string): string => (types.has(name) ? name : name.replace(/_bucket$/u, ''));
  expect(namesIn(alerts).size).toBeGreaterThan(12);
  // Prometheus refuses the file as a whole, and so every alert (prometheus/prometheus#13226, vthriller/promql#4).
  const grouped = /\b(?:and|or|unless)\s+(?:(?:on|ignoring)\s*\([^)]*\)\s*)?group_(?:left|right)\b/u;
  expect(alerts.filter((expr) => grouped.test(expr))).toEqual([]);
  const asked = [...namesIn([...alerts, ...shown, ...variables])];
  expect(asked.filter((name) => !types.has(base(name)))).toEqual([]);
  const drawn = new Set([...namesIn([...shown, ...variables])].map(base));
  expect([...types].filter((name) => !drawn.has(name))).toEqual([]);
});
