/** Drivers for the tests of the interface: a kit that reports everything which the interface knows, with a drone and two cameras. */
import { z } from 'zod';
import { droneFeeds } from '../../../src/contract/drone-feeds.ts';
import { onvifFeeds, vendorcamFeeds } from '../../../src/contract/feeds.ts';
import type { JsonObject } from '../../../src/contract/json.ts';
import type { KitPart } from '../../../src/contract/kit.ts';
import { type Command, defineCommand, noInput } from '../../../src/toolkit/driver/command.ts';
import { defineDriver } from '../../../src/toolkit/driver/driver.ts';
import { CommandRefused } from '../../../src/platform/errors.ts';
import { aborted, every, sleep } from '../../../src/platform/time.ts';

const options = z.strictObject({});
const timestamp = '2026-11-21T10:00:00.000Z';

/** What the kit reports, beside its location. */
export const played = {
  wans: [
    {
      name: 'eth3',
      type: 'satellite',
      status: 'online',
      isp: 'Sky',
      ip: '203.0.113.7',
      rx_bps: 12_100_000,
      tx_bps: 2_300_000,
      rx_bps_max: 180_000_000,
      tx_bps_max: 20_000_000,
      latency_ms: 48.2,
      jitter_ms: 6.1,
      packet_loss_pct: 0.2,
      availability_pct: 99.7,
      usage: { today_rx_gb: 1.25, today_tx_gb: 0.2, month_rx_gb: 41.2, month_tx_gb: null },
    },
    { name: 'eth4', type: 'ethernet', status: 'offline' },
    { name: 'Wwan0', type: 'cellular', status: 'standby', latency_ms: 61 },
  ],
  battery: 82,
  battery_charging: false,
  gateway: { name: 'gw-7', model: 'MX-1', cpu_pct: 31.5, mem_pct: 40.1, uptime_s: 259_200 },
  clients: [{ name: 'tablet', ip: '10.0.0.12', mac: '02:00:00:aa:bb:cc', type: 'wireless' }],
  speedtest: { download_mbps: 92.4, upload_mbps: 11.8, latency_ms: 44, timestamp },
} as const satisfies KitPart;

const fix = { latitude: 47.39, longitude: 8.54, altitude: 455.2, source: 'satellite' } as const;

/** The fix is told again and again, as a receiver does, so that it does not grow stale. */
export const playedKit = defineDriver({
  name: 'played-kit',
  feeds: {},
  options,
  run: async (_, host) => {
    host.reportKit(played);
    host.reportLocation({ ...fix, age_ms: 0 });
    every(1_000, host.signal, () => host.reportLocation({ ...fix, age_ms: 0 }));
    await aborted(host.signal);
  },
});

/** The newest message of each feed of the drone. */
export const playedDrone = {
  gps: { lat: 47.4, lon: 8.55, alt_m: 535.3, ground_speed: 8.2, heading: 90 },
  gps_raw: { lat: 47.4, lon: 8.55, alt_m: 535.1, fix_type: 3, satellites_visible: 14 },
  battery: { voltage: 15.9, current: 12.1, remaining_pct: 71 },
  attitude: { roll: 1.5, pitch: -2, yaw: 90 },
  radio: { rssi: 180, remote_rssi: 175, noise: 40, rx_errors: 2 },
  sys_status: { armed: true, flight_mode: 'GUIDED', ekf_ok: true, pre_arm_check: true },
  vfr_hud: { airspeed: 8, groundspeed: 8.2, throttle_pct: 45, climb_mps: 0.1, heading: 90 },
} as const;

export const drone = defineDriver({
  name: 'played-drone',
  feeds: droneFeeds,
  options,
  run: async (_, host) => {
    const about = { asset_key: 'drone', name: 'Falcon', type: 'drone', protocol: 'mavlink' } as const;
    const sink = host.announce({ ...about, vendor: 'ArduPilot', model: 'Quad' }, droneCommands());
    const { gps, gps_raw, battery, attitude, radio, sys_status, vfr_hud } = playedDrone;
    sink.publish('gps', gps);
    sink.publish('gps_raw', gps_raw);
    sink.publish('battery', battery);
    sink.publish('attitude', attitude);
    sink.publish('radio', radio);
    sink.publish('sys_status', sys_status);
    sink.publish('vfr_hud', vfr_hud);
    sink.setPosition({ lat: gps.lat, lon: gps.lon, alt_m: gps.alt_m });
    await aborted(host.signal);
  },
});

const number = z.number();
/** With what the real driver says of it. */
const alt_m = number.meta({ 'x-kit-datum': 'relative', 'x-kit-unit': 'm' });

function droneCommands(): Command[] {
  return [
    defineCommand({ ...plain('arm', 'medium'), input: noInput, handle: refuse }),
    defineCommand({ ...plain('disarm', 'high'), input: noInput, handle: echo }),
    defineCommand({ ...plain('return_home', 'medium'), input: noInput, handle: echo }),
    defineCommand({
      ...plain('set_mode', 'medium'),
      input: z.strictObject({ mode: z.enum(['GUIDED', 'AUTO', 'LOITER', 'RTL', 'LAND']) }),
      handle: echo,
    }),
    defineCommand({
      ...plain('goto_waypoint', 'high'),
      input: z.strictObject({ lat: number.min(-90).max(90), lon: number.min(-180).max(180), alt_m }),
      handle: async (target, context) => {
        context.progress('on the way', 50);
        await sleep(300, context.signal);
        if (context.signal.aborted) throw context.signal.reason;
        return { reached: target };
      },
    }),
  ];
}

export const vendorcam = defineDriver({
  name: 'played-vendorcam',
  feeds: vendorcamFeeds,
  options,
  run: async (_, host) => {
    const about = { asset_key: 'vendorcam', name: 'Gate', type: 'camera', protocol: 'vendorcam' } as const;
    const sink = host.announce({ ...about, rtsp_url: 'rtsp://viewer:secret@127.0.0.1:554/1' }, [
      defineCommand({
        ...plain('ptz_move', 'low'),
        input: z
          .strictObject({ direction, speed: z.int().min(1).max(64).optional() })
          .meta({ 'x-kit-move-ms': 1_000 }),
        handle: echo,
      }),
      defineCommand({
        ...plain('ptz_preset', 'low'),
        input: z.strictObject({ preset_id: z.int() }),
        handle: echo,
      }),
      defineCommand({
        ...plain('set_motion_detection', 'low'),
        input: z.strictObject({ enabled: z.boolean() }),
        handle: echo,
      }),
      defineCommand({ ...plain('reboot', 'high'), input: noInput, handle: echo }),
    ]);
    sink.publish('status', { online: true, motion_alarm: true, ai_alarm: true });
    sink.publish('motion', { detected: true, timestamp });
    sink.publish('ai_detection', { detected: true, types: ['people', 'vehicle'], timestamp });
    await aborted(host.signal);
  },
});

const direction = z.enum(['up', 'down', 'left', 'right', 'stop']);

export const onvif = defineDriver({
  name: 'played-onvif',
  feeds: onvifFeeds,
  options,
  run: async (_, host) => {
    const about = { asset_key: 'onvif', name: 'Yard', type: 'camera', protocol: 'onvif' } as const;
    const sink = host.announce({ ...about, parent_key: 'vendorcam' }, [
      defineCommand({
        ...plain('ptz_move', 'low'),
        input: z.strictObject({ direction, speed: z.number().min(0).max(1).optional() }),
        handle: echo,
      }),
      defineCommand({
        ...plain('ptz_preset', 'low'),
        input: z.strictObject({ preset_token: z.string().min(1).max(64) }),
        handle: echo,
      }),
    ]);
    sink.publish('status', { online: true, timestamp });
    sink.publish('motion', { detected: false });
    await aborted(host.signal);
  },
});

/** The kit's own gateway, whose protocol the interface does not have. */
export const gateway = defineDriver({
  name: 'played-gateway',
  feeds: {},
  options,
  run: async (_, host) => {
    host.announce({ asset_key: 'gateway', name: 'gw-7', type: 'gateway', protocol: 'gateway' });
    await aborted(host.signal);
  },
});

export const playedDrivers = [playedKit, drone, vendorcam, onvif, gateway];

function plain(name: string, risk_level: 'low' | 'medium' | 'high') {
  return { name, description: `Plays ${name}.`, risk_level };
}

async function echo(payload: JsonObject): Promise<JsonObject> {
  return { done: payload };
}

async function refuse(): Promise<JsonObject> {
  throw new CommandRefused('the drone refuses to arm: compass not calibrated');
}
