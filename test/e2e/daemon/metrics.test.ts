/** What Prometheus sees of a running daemon, and that dashboard and alerts ask for nothing else. */
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { startMosquitto, type Broker } from '../../support/brokers/broker.ts';
import { eventually } from '../../support/eventually.ts';
import { type Kit, withKit } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';
import { freePort } from '../../support/ports.ts';

const systemd = new URL('../../../systemd/', import.meta.url);
const dashboard = z.object({
  panels: z.array(z.object({ title: z.string(), targets: z.array(z.object({ expr: z.string() })) })),
});
const rules = z.object({
  groups: z.array(
    z.object({
      rules: z.array(
        z.object({
          alert: z.string(),
          expr: z.string(),
          annotations: z.object({ summary: z.string(), remedy: z.string() }),
        }),
      ),
    }),
  ),
});

/** Samples by name and labels, as the text format has them. */
function samplesOf(text: string): ReadonlyMap<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

function sum(samples: ReadonlyMap<string, number>, name: string): number {
  let total = 0;
  for (const [key, value] of samples) if (key === name || key.startsWith(`${name}{`)) total += value;
  return total;
}

describe.skipIf(peerMissing('mosquitto'))('a daemon with metrics', () => {
  let broker: Broker;
  beforeAll(async () => {
    broker = await startMosquitto();
  });
  afterAll(async () => {
    await broker.stop();
  });

  async function withScene(play: (kit: Kit, get: (path: string) => Promise<Response>) => Promise<void>) {
    await withKit({ rehearsed: true }, async (kit) => {
      const port = await freePort();
      await kit.configure({
        broker: { url: broker.url },
        metrics: { listen: `127.0.0.1:${port}` },
        drivers: [kit.gateway, kit.links, kit.rehearse({ gps_hz: 5 })],
      });
      const cloud = await kit.listen(broker.url);
      await kit.start();
      await cloud.until('a position', ({ channel }) => channel.endsWith('/gps'));
      await play(kit, async (path) => fetch(`http://127.0.0.1:${port}${path}`));
    });
  }

  it('shows books that add up, latencies of the broker and what carried the bytes', async () => {
    await withScene(async (kit, get) => {
      const answer = await get('/metrics');
      expect(answer.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/u);
      const samples = samplesOf(await answer.text());
      const figure = (name: string) => sum(samples, `kit_connector_${name}`);
      expect(figure('messages_accepted_total')).toBeGreaterThan(0);
      expect(figure('messages_accepted_total')).toBe(
        figure('messages_delivered_total') +
          figure('messages_buffered') +
          figure('messages_quarantined') +
          figure('messages_dropped_total'),
      );
      expect(figure('books_balanced')).toBe(1);
      expect(figure('puback_seconds_count')).toBeGreaterThan(0);
      expect(figure('uplink_connected')).toBe(1);
      expect(samples.get('kit_connector_uplink_sent_bytes_total{link_type="ethernet"}') ?? 0).toBeGreaterThan(
        0,
      );
      expect(samples.get('kit_connector_driver_up{name="rehearsal",driver="rehearsal"}')).toBe(1);
      expect(samples.get('kit_connector_driver_starts_total{name="rehearsal",driver="rehearsal"}')).toBe(1);
      expect(samples.get('kit_connector_driver_failures_total{name="rehearsal",driver="rehearsal"}')).toBe(0);
      // Each reason and each link is there from the start on, so that an increase is seen.
      expect(samples.get('kit_connector_messages_dropped_total{reason="evicted"}')).toBe(0);
      expect(samples.get('kit_connector_uplink_sent_bytes_total{link_type="satellite"}')).toBe(0);
      expect(figure('resident_memory_bytes')).toBeGreaterThan(10e6);
      expect((await kit.status()).outbox.balanced).toBe(true);
    });
  });

  it('is healthy without its broker, whose absence is counted in seconds', async () => {
    await withScene(async (kit, get) => {
      const before = sum(
        samplesOf(await (await get('/metrics')).text()),
        'kit_connector_uplink_offline_seconds_total',
      );
      await broker.kill();
      await eventually('the broker is missed', async () => (await kit.status()).uplink.state !== 'connected');
      const health = await get('/healthz');
      expect(health.status).toBe(200);
      expect(await health.text()).toMatch(/^ok: .*not connected/u);
      await eventually('time offline is counted', async () => {
        const samples = samplesOf(await (await get('/metrics')).text());
        return (
          samples.get('kit_connector_uplink_connected') === 0 &&
          sum(samples, 'kit_connector_uplink_offline_seconds_total') > before
        );
      });
      expect((await get('/nothing')).status).toBe(404);
      await broker.start();
    });
  });

  it('exports every figure that the dashboard and the alerts query, and none that both omit', async () => {
    await withScene(async (_kit, get) => {
      const text = await (await get('/metrics')).text();
      const { panels } = dashboard.parse(
        JSON.parse(await readFile(new URL('grafana-dashboard.json', systemd), 'utf8')),
      );
      const { groups } = rules.parse(parse(await readFile(new URL('alerts.yaml', systemd), 'utf8')));
      const asked = [
        ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
        ...groups.flatMap(({ rules: all }) => all.map(({ expr }) => expr)),
      ].flatMap((expr) => expr.match(/kit_connector_\w+/gu) ?? []);
      const types = new Map(
        Array.from(text.matchAll(/^# TYPE (\w+) (\w+)$/gmu), ([, name = '', type]) => [name, type]),
      );
      const base = (name: string): string => (types.has(name) ? name : name.replace(/_bucket$/u, ''));
      expect(asked.filter((name) => !types.has(base(name)))).toEqual([]);
      const unused = [...types.keys()].filter((name) => !asked.some((each) => base(each) === name));
      const informative = ['info', 'start_time_seconds', 'driver_state_seconds', 'uplink_in_flight'];
      expect(new Set(unused)).toEqual(new Set(informative.map((name) => `kit_connector_${name}`)));
      const readme = await readFile(new URL('README.md', systemd), 'utf8');
      expect(
        [...types.keys()].filter((name) => !readme.includes(`\`${name.replace('kit_connector_', '')}`)),
      ).toEqual([]);
    });
  });

  it('is not kept from its end by a reader who holds the port open', async () => {
    await withKit({ rehearsed: true }, async (kit) => {
      const port = await freePort();
      await kit.configure({
        broker: { url: broker.url },
        metrics: { listen: `127.0.0.1:${port}` },
        drivers: [kit.gateway],
      });
      const child = await kit.start();
      const reader = connect(port, '127.0.0.1');
      reader.on('error', () => undefined);
      reader.write('GET /metrics HTTP/1.1\r\n');
      expect((await child.end('SIGTERM')).code).toBe(0);
      reader.destroy();
    });
  });
});
