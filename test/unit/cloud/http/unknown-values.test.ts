/** What a kit has not reported: absent where the interface allows no null, and never invented. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/contract/json.ts';
import { channels } from '../../../../src/contract/topics.ts';
import { kit_id, samples, task_id } from '../../../support/contract-samples.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';

let lab: ServiceLab;
beforeEach(async () => {
  lab = await startServiceLab(kit_id);
});
afterEach(async () => lab.stop());

async function ask(
  path: string,
  key = lab.key,
): Promise<{ readonly status: number; readonly body: unknown }> {
  const response = await fetch(lab.url + path, { headers: { 'x-api-key': key } });
  return { status: response.status, body: await response.json() };
}

const kit = `/api/kits/${kit_id}`;
const no_usage = { today_rx_gb: null, today_tx_gb: null, month_rx_gb: null, month_tx_gb: null };
/** As a kit reports what it does not know. */
const reported: JsonObject = {
  location: {
    latitude: 47,
    longitude: 8,
    altitude: null,
    source: 'manual',
    stale: false,
    kit_location: null,
  },
  wans: [
    {
      name: 'eth3',
      type: null,
      status: null,
      isp: null,
      ip: null,
      rx_bps: null,
      latency_ms: null,
      jitter_ms: null,
      packet_loss_pct: null,
      availability_pct: null,
      usage: { today_rx_gb: 1, month_rx_gb: null },
    },
    { name: 'eth4', type: 'ethernet', usage: null },
  ],
  battery: null,
  battery_charging: null,
  gateway: { name: 'gw', model: null, cpu_pct: null, mem_pct: 5, uptime_s: null },
  clients: [{ name: null, ip: null, mac: '02:00:00:aa:bb:cc', type: null }],
  speedtest: { download_mbps: null, upload_mbps: 3, latency_ms: null, timestamp: '2026-11-21T10:00:00.000Z' },
};
const shown = {
  location: { latitude: 47, longitude: 8, source: 'manual', stale: false },
  wans: [
    { name: 'eth3', usage: { ...no_usage, today_rx_gb: 1 } },
    { name: 'eth4', type: 'ethernet' },
  ],
  battery: null,
  battery_charging: null,
  gateway: { name: 'gw', mem_pct: 5 },
  clients: [{ mac: '02:00:00:aa:bb:cc' }],
  speedtest: { upload_mbps: 3, timestamp: '2026-11-21T10:00:00.000Z' },
};

describe('Values that a kit does not know', () => {
  it('are absent from the telemetry and from live, and only battery fields and usage are null', async () => {
    await lab.publish(channels.state, samples['kitState'] ?? {});
    await lab.publish(channels.telemetry, reported);
    const kit_name = 'Kit Seven';
    expect((await ask(`${kit}/telemetry`)).body).toEqual({ online: true, kit_id, kit_name, ...shown });
    const { location, wans, battery, battery_charging, gateway } = shown;
    const live = { location, wans, battery, battery_charging, gateway };
    expect((await ask('/api/kits')).body).toMatchObject([{ live }]);
    expect((await ask(`${kit}/clients`)).body).toEqual({ clients: shown.clients });
    expect((await ask(`${kit}/speedtest`)).body).toEqual(shown.speedtest);
  });

  it('are absent as whole parts, too', async () => {
    await lab.publish(channels.state, samples['kitState'] ?? {});
    await lab.publish(channels.telemetry, { battery: 50, battery_charging: null });
    const [known] = (await ask('/api/kits')).body as readonly { readonly live: object }[];
    expect(known?.live).toEqual({ wans: [], battery: 50, battery_charging: null });
  });

  it('leave a link its usage: its fields are null', async () => {
    await lab.publish(channels.state, samples['kitState'] ?? {});
    await lab.publish(channels.telemetry, reported);
    const eth4 = { name: 'eth4', type: 'ethernet', usage: no_usage };
    expect((await ask(`${kit}/links/ETH4`)).body).toEqual(eth4);
    expect((await ask(`${kit}/links`)).body).toMatchObject({ links: [{ name: 'eth3' }, eth4] });
  });
});

describe('A kit of the key that has never reported', () => {
  it('is listed without live and last_seen, and answers 503', async () => {
    expect((await ask('/api/kits')).body).toEqual([
      { id: kit_id, name: kit_id, online: false, live: null, summary: expect.anything() as unknown },
    ]);
    for (const path of ['/telemetry', '/links', '/links/eth3', '/location', '/battery', '/clients']) {
      expect([path, (await ask(kit + path)).status]).toEqual([path, 503]);
    }
    expect((await ask(`${kit}/assets`)).body).toEqual({ assets: [] });
  });

  it('takes partner assets and their fixes in advance, and keeps them when it reports', async () => {
    const created = await fetch(`${lab.url}${kit}/assets`, {
      method: 'POST',
      headers: { 'x-api-key': lab.key, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'Truck', type: 'vehicle', vendor: 'ACME' }),
    });
    expect(created.status).toBe(201);
    await lab.publish(channels.state, samples['kitState'] ?? {});
    expect((await ask(`${kit}/assets`)).body).toMatchObject({ assets: [{ name: 'Truck', vendor: null }] });
    expect((await ask('/api/kits')).body).toMatchObject([{ name: 'Kit Seven', online: true }]);
  });

  it('is unknown to a key of all kits until it reports', async () => {
    const key = await lab.giveKey({ kits: '*' });
    expect((await ask('/api/kits', key)).body).toEqual([]);
    expect((await ask(`/api/kits/${task_id}`, key)).status).toBe(404);
  });
});
