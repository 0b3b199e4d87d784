/** The resources as the interface document describes them, written from its tables and not from the schemas of the service. More fields are allowed. */
import { z } from 'zod';

const number = z.number();
const text = z.string();
const pct = z.number().min(0).max(100);
const uuid = z.uuid();
const time = z.iso.datetime({ offset: false });
const named = <T extends z.ZodRawShape>(shape: T) => z.looseObject(shape);

const usage = named({
  today_rx_gb: number.nullable(),
  today_tx_gb: number.nullable(),
  month_rx_gb: number.nullable(),
  month_tx_gb: number.nullable(),
});

/** The document allows a subset of these within telemetry; what is not known is left out elsewhere, too. */
const link = named({
  name: text,
  type: z.enum(['satellite', 'cellular', 'ethernet', 'wifi']).optional(),
  status: z.enum(['online', 'offline', 'standby']).optional(),
  isp: text.optional(),
  ip: text.optional(),
  rx_bps: number.optional(),
  tx_bps: number.optional(),
  rx_bps_max: number.optional(),
  tx_bps_max: number.optional(),
  latency_ms: number.optional(),
  jitter_ms: number.optional(),
  packet_loss_pct: pct.optional(),
  availability_pct: pct.optional(),
  usage: usage.optional(),
});

const live = {
  location: named({
    latitude: number,
    longitude: number,
    altitude: number.optional(),
    source: z.enum(['satellite', 'satellite_cached', 'cellular', 'manual']),
    stale: z.boolean(),
    kit_location: text.optional(),
  }),
  wans: z.array(link),
  battery: pct.nullable(),
  battery_charging: z.boolean().nullable(),
  gateway: named({ name: text, model: text, cpu_pct: pct, mem_pct: pct, uptime_s: number.optional() }),
};

export const kits = z.array(
  named({ id: uuid, name: text, online: z.boolean(), last_seen: time, live: named(live).nullable() }),
);

export const telemetry = named({
  ...live,
  online: z.boolean(),
  kit_id: uuid,
  kit_name: text,
  clients: z.array(named({ name: text.optional(), ip: text, mac: text, type: text.optional() })),
  speedtest: named({
    download_mbps: number,
    upload_mbps: number,
    latency_ms: number,
    timestamp: time,
  }).optional(),
});

export const links = named({ links: z.array(link) });
export const oneLink = link.required({ usage: true });

const common = {
  id: uuid,
  asset_key: text,
  name: text,
  type: text,
  vendor: text.nullable(),
  model: text.nullable(),
  last_seen_at: time,
  parent_id: uuid.nullable(),
};

export const assets = named({
  assets: z.array(
    named({
      ...common,
      protocol: z.enum(['vendorcam', 'onvif', 'mavlink', 'vendorradio', 'partner']),
      status: z.enum(['online', 'offline']),
      lat: number.nullable(),
      lon: number.nullable(),
      whep_url: text.nullable(),
    }),
  ),
});

export const created = named({
  ...common,
  asset_key: z.string().regex(/^[0-9a-f-]{36}:partner:[0-9a-f-]{36}$/u),
  kit_id: uuid,
  protocol: z.literal('partner'),
  status: z.literal('online'),
  metadata: z.record(z.string(), z.unknown()),
});

export const commands = named({
  commands: z.array(
    named({
      id: uuid,
      name: text,
      description: text,
      risk_level: z.enum(['low', 'medium', 'high']),
      requires_approval: z.boolean(),
      input_schema: z.record(z.string(), z.unknown()),
    }),
  ),
});

export const task = named({
  id: uuid,
  asset_id: uuid,
  command_name: text,
  payload: z.record(z.string(), z.unknown()),
  status: z.literal('pending'),
  result: z.strictObject({}),
  requested_by: uuid,
  created_at: time,
});

/** Fields of each feed, by kind of asset; those of a camera by its protocol. */
export const feedFields: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  drone: {
    gps: ['lat', 'lon', 'alt_m', 'ground_speed', 'heading'],
    gps_raw: ['lat', 'lon', 'alt_m', 'fix_type', 'satellites_visible'],
    battery: ['voltage', 'current', 'remaining_pct'],
    attitude: ['roll', 'pitch', 'yaw'],
    radio: ['rssi', 'remote_rssi', 'noise', 'rx_errors'],
    sys_status: ['armed', 'flight_mode', 'ekf_ok', 'pre_arm_check'],
    vfr_hud: ['airspeed', 'groundspeed', 'throttle_pct', 'climb_mps', 'heading'],
  },
  vendorcam: {
    status: ['online', 'motion_alarm', 'ai_alarm'],
    motion: ['detected', 'timestamp'],
    ai_detection: ['detected', 'types', 'timestamp'],
  },
  onvif: { status: ['online', 'timestamp'], motion: ['detected'] },
};
