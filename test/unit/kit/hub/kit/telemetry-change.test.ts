/** What of the kit's telemetry is news, and what an hour of an idle kit costs upstream. */
import { expect, it, vi } from 'vitest';
import type { Link } from '../../../../../src/contract/kit.ts';
import { writeEnvelope } from '../../../../../src/contract/envelope.ts';
import { channels, upTopic } from '../../../../../src/contract/topics.ts';
import { urgencyOf } from '../../../../../src/kit/hub/kit/kit.ts';
import type { DroneHost } from '../../../../fakes/scripted-driver.ts';
import { kit_id, telemetry_defaults } from '../../../../support/kit/hub-lab.ts';
import { testHub } from '../../../../support/kit/test-hub.ts';
import { useFakeTime } from '../../../../support/fake-time.ts';
import { testDirectory } from '../../../../support/test-directory.ts';

useFakeTime();

const { deadbands, floor_ms, pace_ms } = telemetry_defaults;
const place = {
  latitude: 59,
  longitude: 18,
  altitude: 68,
  source: 'satellite',
  stale: false,
  kit_location: 'X',
};

it.each<[string, string, unknown, unknown, 'none' | 'soon' | 'now']>([
  ['a little more load', 'gateway', { cpu_pct: 3 }, { cpu_pct: 7.9 }, 'none'],
  ['much more load', 'gateway', { cpu_pct: 3 }, { cpu_pct: 8 }, 'soon'],
  ['uptime alone', 'gateway', { uptime_s: 3 }, { uptime_s: 9_000 }, 'none'],
  ['latency within 5 ms', 'wans', [{ latency_ms: 20 }], [{ latency_ms: 24 }], 'none'],
  ['latency within 10 %', 'wans', [{ latency_ms: 600 }], [{ latency_ms: 655 }], 'none'],
  ['latency beyond 10 %', 'wans', [{ latency_ms: 600 }], [{ latency_ms: 660 }], 'soon'],
  ['idle traffic', 'wans', [{ rx_bps: 2_000 }], [{ rx_bps: 90_000 }], 'none'],
  ['traffic that doubled', 'wans', [{ rx_bps: 2e6 }], [{ rx_bps: 4e6 }], 'soon'],
  ['a few megabytes', 'wans', [{ usage: { today_rx_gb: 1 } }], [{ usage: { today_rx_gb: 1.009 } }], 'none'],
  ['10 megabytes', 'wans', [{ usage: { today_rx_gb: 1 } }], [{ usage: { today_rx_gb: 1.02 } }], 'soon'],
  ['a link that went offline', 'wans', [{ status: 'online' }], [{ status: 'offline' }], 'now'],
  ['a figure that became unknown', 'wans', [{ latency_ms: 20 }], [{ latency_ms: null }], 'now'],
  ['a new link', 'wans', [{ name: 'a' }], [{ name: 'a' }, { name: 'b' }], 'now'],
  ['a position within 10 m', 'location', place, { ...place, latitude: 59.00008 }, 'none'],
  ['a position beyond 10 m', 'location', place, { ...place, latitude: 59.0001 }, 'soon'],
  ['a stale position', 'location', place, { ...place, stale: true }, 'now'],
  ['another city', 'location', place, { ...place, kit_location: 'Y' }, 'now'],
  ['a part that was never sent', 'battery', undefined, 80, 'now'],
  ['a percent of battery', 'battery', 80, 79, 'soon'],
])('takes %s for what it is', (...[, name, told, known, news]) => {
  expect(urgencyOf(name, told, known, deadbands)).toBe(news);
});

async function withKit(
  fn: (kit: ReturnType<typeof testHub> & { host: DroneHost }) => Promise<void>,
  telemetry_pace_ms = pace_ms,
): Promise<void> {
  const dir = await testDirectory();
  const lab = testHub({ state_dir: dir, telemetry_floor_ms: floor_ms, telemetry_pace_ms });
  await fn({ ...lab, host: await lab.hostOf() });
  await lab.stop();
}

it('sends figures at most once in the pace, and a link that goes offline at once', async () => {
  await withKit(async ({ host, outbox }) => {
    const report = (status: Link['status'], latency_ms: number): void =>
      host.reportKit({ wans: [{ name: 'wwan0', status, latency_ms }] });
    report('online', 20);
    await vi.advanceTimersByTimeAsync(1_000);
    outbox.clear();
    for (let second = 1; second <= (2 * pace_ms) / 1_000; second += 1) {
      report('online', second * 100);
      await vi.advanceTimersByTimeAsync(1_000);
    }
    expect(outbox.on(channels.telemetry)).toHaveLength(2);
    outbox.clear();
    report('offline', 1_000);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(outbox.on(channels.telemetry)).toMatchObject([{ wans: [{ status: 'offline' }] }]);
  });
});

it('measures slow drift from what was sent, not from what was seen last', async () => {
  await withKit(async ({ host, outbox }) => {
    for (let cpu_pct = 1; cpu_pct <= 21; cpu_pct += 1) {
      host.reportKit({ gateway: { name: 'kit', cpu_pct } });
      await vi.advanceTimersByTimeAsync(pace_ms);
    }
    expect(outbox.on(channels.telemetry).length).toBeGreaterThanOrEqual(4);
  });
});

it('sends where a kit is that drives each second, where the pace is a second', async () => {
  await withKit(async ({ host, outbox }) => {
    for (let second = 0; second < 20; second += 1) {
      host.reportLocation({
        latitude: 59 + second / 1_000,
        longitude: 18,
        altitude: null,
        source: 'satellite',
        age_ms: 0,
      });
      await vi.advanceTimersByTimeAsync(1_000);
    }
    expect(outbox.on(channels.telemetry).length).toBeGreaterThanOrEqual(19);
  }, 1_000);
});

/** Numbers from 0 to 1 that repeat from run to run. */
function noise(): () => number {
  let state = 7;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state / 0x7fffffff;
  };
}

/** Round trips that vary by 20 %, as the prober tells them: the mean of a window. */
function roundTrips(base_ms: number, random: () => number): () => number {
  const window: number[] = [];
  return () => {
    window.push(base_ms * (1 + (random() - 0.5) * 0.4));
    if (window.length > probes_in_window) window.shift();
    return Number((window.reduce((sum, each) => sum + each, 0) / window.length).toFixed(1));
  };
}
const probes_in_window = 20;

function idleLink(name: string, random: () => number, latency_ms: number, second: number): Link {
  return {
    name,
    type: latency_ms > 100 ? 'satellite' : 'cellular',
    status: 'online',
    isp: 'Example Networks',
    ip: '203.0.113.77',
    rx_bps: Math.round(2_000 + random() * 60_000),
    tx_bps: Math.round(2_000 + random() * 40_000),
    rx_bps_max: 48_200_000,
    tx_bps_max: 9_100_000,
    latency_ms,
    jitter_ms: Number((4 + random() * 3).toFixed(1)),
    packet_loss_pct: random() > 0.98 ? 1 : 0,
    availability_pct: 99.8,
    usage: {
      today_rx_gb: Number((0.5 + second * 4e-6).toFixed(3)),
      today_tx_gb: Number((0.2 + second * 3e-6).toFixed(3)),
      month_rx_gb: Number((12.5 + second * 4e-6).toFixed(3)),
      month_tx_gb: Number((4.2 + second * 3e-6).toFixed(3)),
    },
  };
}

/** Length of an MQTT PUBLISH packet, QoS 1, with the IPv4, TCP and TLS bytes that carry it and its acknowledgement. */
function bytesOnWire(topic: string, payload: string): number {
  const rest = 2 + Buffer.byteLength(topic) + 2 + 1 + Buffer.byteLength(payload);
  const tls_tcp_ip = 22 + 40;
  return 1 + (rest < 128 ? 1 : 2) + rest + tls_tcp_ip + 40;
}

it.each([
  ['an idle kit', 3, 50_000],
  ['a kit whose processor is never still', 90, 80_000],
])('costs %s little upstream: at most so many bytes an hour', async (_, cpu_noise, limit) => {
  await withKit(async ({ host, outbox }) => {
    const random = noise();
    const near = roundTrips(45, random);
    const far = roundTrips(580, random);
    for (let second = 0; second < 3_600; second += 1) {
      host.reportKit({
        wans: [idleLink('wwan0', random, near(), second), idleLink('eth1', random, far(), second)],
        gateway: {
          name: 'kit-7',
          model: 'Gateway GX-2',
          cpu_pct: Number((2 + random() * cpu_noise + (second % 211 < 6 ? 20 : 0)).toFixed(1)),
          mem_pct: Number((41 + random() * 2).toFixed(1)),
          uptime_s: 90_000 + second,
        },
        battery: 97 - Math.floor(second / 1_200),
        battery_charging: false,
        clients: [1, 2, 3, 4].map((last) => ({
          name: `tablet-${last}`,
          ip: `192.168.8.${last}`,
          mac: `02:00:00:00:00:0${last}`,
          type: 'wireless',
        })),
      });
      host.reportLocation({
        latitude: 59.3293 + (random() - 0.5) * 5e-5,
        longitude: 18.0686 + (random() - 0.5) * 5e-5,
        altitude: 68 + random() * 4,
        source: 'satellite',
        age_ms: 100,
      });
      await vi.advanceTimersByTimeAsync(1_000);
    }
    const topic = upTopic(kit_id, channels.telemetry);
    const observed = { time_ms: Date.now(), epoch: 12, seq: 1_234_567 };
    const sent = outbox
      .on(channels.telemetry)
      .map((data) => bytesOnWire(topic, writeEnvelope(observed, JSON.stringify(data))));
    const bytes = sent.reduce((sum, each) => sum + each, 0);
    console.info(`an hour: ${sent.length} messages, ${bytes} bytes`);
    expect(sent.length).toBeGreaterThanOrEqual(12);
    expect(bytes).toBeLessThan(limit);
  });
});
