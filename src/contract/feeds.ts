/**
 * The messages of the feeds of assets, by kind of asset, and the edges that are events without being feeds.
 * A message has the interface's fields, all of them; a value that is not known is null. The objects are loose, so that
 * a driver may add facts it knows (the optional fields below, and more in a later version) and no receiver may refuse them.
 */
import { z } from 'zod';
import { assetStatus, latitude, longitude } from './assets.ts';
import { droneFeeds } from './drone-feeds.ts';
import { altitude, count, percent, timestamp, volt } from './feed-units.ts';
import type { Lane } from './lanes.ts';
import {
  address_chars_max,
  feed_chars_max,
  feed_list_max,
  key_chars_max,
  name_chars_max,
  sentence_chars_max,
} from './limits.ts';
import { linkCause, linkStatus, linkType } from './kit.ts';

export type FeedSet = Readonly<Record<string, z.ZodType>>;

/** What a vendor camera's detector knows; the names are the camera's own. */
export const aiType = z.enum(['people', 'vehicle', 'dog_cat', 'face', 'package']);
export type AiType = z.output<typeof aiType>;

/** Somebody rang. Since contract 1.2, as all feeds of ONVIF cameras but `status` and `motion`. */
const doorbell = z.looseObject({ detected: z.boolean(), timestamp });

/** What an ONVIF camera sees: the kinds of objects of vendor cameras, and what rules of its analytics report. */
export const onvifAiType = z.enum([...aiType.options, 'line_crossing', 'intrusion', 'loitering']);
/** What is wrong with the picture of a camera, as the camera reports it. */
export const pictureFault = z.enum(['signal_loss', 'blurry', 'dark', 'bright']);

/** Of the JPEG of an alarm. */
export const alarm_picture_bytes_max = 24 * 1024;
const alarms_of_picture_max = 16;

/** A small picture that was taken at an alarm, or why there is none. Since 1.2. */
const alarm_picture = z.looseObject({
  alarms: z
    .array(z.looseObject({ feed: z.string().max(feed_chars_max), timestamp }))
    .min(1)
    .max(alarms_of_picture_max)
    .describe('messages of this asset that it belongs to, by their feed and `timestamp`'),
  jpeg: z
    .string()
    .max((alarm_picture_bytes_max / 3) * 4)
    .nullable()
    .describe('Base64; null: there is none, for the reason given'),
  taken_at: timestamp.nullable(),
  reason: z.string().max(sentence_chars_max).nullable().describe('why there is no picture'),
});

export const vendorcamFeeds = {
  status: z.looseObject({
    online: z.boolean(),
    motion_alarm: z.boolean().nullable().describe('null while the camera is offline'),
    ai_alarm: z.boolean().nullable().describe('null while the camera is offline or when it has no detector'),
  }),
  motion: z.looseObject({ detected: z.boolean(), timestamp }),
  ai_detection: z.looseObject({
    detected: z.boolean(),
    types: z
      .array(aiType)
      .max(aiType.options.length)
      .describe('what is seen now; empty when detected is false'),
    timestamp,
  }),
  doorbell,
  alarm_picture,
} as const satisfies FeedSet;

export const onvifFeeds = {
  status: z.looseObject({ online: z.boolean(), timestamp }),
  motion: z.looseObject({ detected: z.boolean(), timestamp: timestamp.optional() }),
  ai_detection: z.looseObject({
    detected: z.boolean(),
    types: z
      .array(onvifAiType)
      .max(onvifAiType.options.length)
      .describe('what is seen now; empty when detected is false'),
    timestamp,
  }),
  /** The camera was covered, turned or defocused. */
  tamper: z.looseObject({ detected: z.boolean(), timestamp }),
  doorbell,
  /** An alarm input of the camera, such as a door contact. */
  digital_input: z.looseObject({
    detected: z.boolean().describe('at least one input is active'),
    inputs: z
      .array(z.string().max(name_chars_max))
      .max(feed_list_max)
      .describe('active inputs as the camera calls them'),
    timestamp,
  }),
  sound: z.looseObject({ detected: z.boolean(), timestamp }),
  picture_fault: z.looseObject({
    detected: z.boolean(),
    types: z.array(pictureFault).max(pictureFault.options.length),
    timestamp,
  }),
  /** The memory card or disk of the camera failed or is full. */
  storage_fault: z.looseObject({ detected: z.boolean(), timestamp }),
  alarm_picture,
} as const satisfies FeedSet;

const dbm = z.number().min(-200).max(60).nullable().describe('dBm');
const bits_per_s = z.number().nonnegative().nullable().describe('bits per second');
const mac_address = z.string().max(address_chars_max).describe('lower-case hexadecimal digits with colons');

/** One neighbour of a radio. Rates ending in `_rate_bps` are those of the modulation, not of what is carried. */
const radioNeighbour = z.looseObject({
  mac: mac_address,
  name: z.string().max(name_chars_max).nullable(),
  asset_key: z
    .string()
    .max(key_chars_max)
    .nullable()
    .describe('of the asset that it is, where it is one of this kit'),
  rssi: dbm,
  rssi_ant: z.array(dbm).max(feed_list_max).nullable().describe('of each antenna'),
  noise: dbm,
  snr_db: z.number().nullable(),
  tx_rate_bps: bits_per_s,
  rx_rate_bps: bits_per_s,
  mcs: count,
  tx_retries: count,
  tx_failed: count,
  loss_pct: percent,
  inactive_ms: count.describe('since it was last received'),
  connected_s: count,
  tq_pct: percent.describe('quality of the path as batman-adv rates it'),
  hops: z.enum(['direct', 'relay']).nullable(),
  next_hop: mac_address.nullable(),
});

export const vendorradioFeeds = {
  /** The link to the primary peer. The names are the drone's; the values here are dBm. */
  radio: z.looseObject({
    rssi: dbm,
    remote_rssi: dbm.describe('our signal at the peer, dBm; null unless the peer is a radio of this kit'),
    noise: dbm,
    rx_errors: count.describe('frames of the peer that were dropped on receipt, since it connected'),
    snr_db: z.number().nullable(),
    peer: mac_address.nullable(),
    timestamp,
  }),
  link: z.looseObject({
    mode: z.string().max(name_chars_max).nullable().describe('in the words of the radio, such as Mesh Point'),
    ssid: z.string().max(name_chars_max).nullable().describe('network name or mesh id'),
    channel: z.int().nullable().describe('numbered within its band; see freq_mhz'),
    freq_mhz: z.number().positive().nullable(),
    bandwidth_mhz: z.number().positive().nullable(),
    txpower_dbm: dbm,
    noise: dbm,
    quality_pct: percent,
    busy_pct: percent.describe('share of the time in which the channel was busy'),
    tx_bps: bits_per_s,
    rx_bps: bits_per_s,
    tx_rate_bps: bits_per_s.describe('modulation rate to the primary peer'),
    rx_rate_bps: bits_per_s.describe('modulation rate from the primary peer'),
    peers: count.describe('that were heard within 30 s'),
    timestamp,
  }),
  mesh: z.looseObject({
    protocol: z.enum(['80211s', 'batman_iv', 'batman_v', 'none']).nullable(),
    neighbours: z.array(radioNeighbour).max(64),
    truncated: z.boolean().describe('true: there are more'),
    timestamp,
  }),
  /** Of a mesh peer: `online` and `inactive_ms`, the rest null. */
  status: z.looseObject({
    online: z.boolean(),
    hostname: z.string().max(name_chars_max).nullable(),
    firmware: z.string().max(name_chars_max).nullable(),
    serial: z.string().max(name_chars_max).nullable(),
    uptime_s: z.number().nonnegative().nullable(),
    cpu_pct: percent,
    mem_pct: percent,
    temperature_c: z.number().nullable(),
    voltage: volt,
    source: z
      .enum(['linkstate', 'iwinfo', 'snmp', 'peer'])
      .nullable()
      .describe('where the figures come from'),
    inactive_ms: count.optional(),
    timestamp,
  }),
  /** Only of a radio with a receiver, while it has a position. */
  gps: z.looseObject({
    lat: latitude,
    lon: longitude,
    alt_m: altitude,
    fix_type: z.int().min(0).max(8).nullable(),
    satellites_visible: count,
  }),
} as const satisfies FeedSet;

/** What one modem of the gateway reports. */
const cellularModem = z.looseObject({
  name: z.string().min(1).max(name_chars_max).describe('network interface, as in `wans`'),
  state: z.string().max(sentence_chars_max).describe('connected, or why not'),
  signal_pct: percent,
  technology: z.string().max(name_chars_max).nullable().describe('such as 4G, or 5G + 4G'),
  band: z.string().max(name_chars_max).nullable().describe('of the serving cell, such as B20'),
  freq_mhz: z.number().positive().nullable().describe('of the serving cell, downlink'),
  rssi_dbm: dbm,
  rsrp_dbm: dbm,
  rsrq_db: z.number().nullable(),
  snr_db: z.number().nullable(),
  anchor: z
    .looseObject({
      band: z.string().max(name_chars_max).nullable(),
      rssi_dbm: dbm,
      rsrp_dbm: dbm,
      rsrq_db: z.number().nullable(),
      snr_db: z.number().nullable(),
    })
    .nullish()
    .describe(
      'the 4G carrier beside the 5G one whose figures stand above, where 5G needs it (NSA). Since 1.2',
    ),
  operator: z.string().max(name_chars_max).nullable().describe('that serves the modem now'),
  operator_code: z.string().max(name_chars_max).nullable().describe('MCC and MNC'),
  roaming: z.boolean().nullable(),
  sim_operator: z.string().max(name_chars_max).nullable(),
  sim_iccid_end: z.string().max(name_chars_max).nullable().describe('last four digits'),
  model: z.string().max(name_chars_max).nullable(),
  imei_end: z.string().max(name_chars_max).nullable().describe('last four digits'),
});

export const capState = z.enum(['ok', 'forecast', 'warning', 'exceeded']);
export type CapState = z.output<typeof capState>;

const dataCap = z.looseObject({
  name: z.string().min(1).max(name_chars_max).describe('interface name, as in `wans`'),
  cap_gb: z.number().positive().describe('of the billing month, both directions; GB of 10^9 bytes'),
  used_gb: z.number().nonnegative(),
  used_pct: z.number().nonnegative().describe('may be above 100'),
  forecast_gb: z
    .number()
    .nonnegative()
    .nullable()
    .describe('at the end of the billing month, at the present rate; null: too early to say'),
  last_day: z.string().max(name_chars_max).describe('of the billing month, YYYY-MM-DD'),
  state: capState.describe('forecast: the cap will not last; warning: most of it is used'),
});
export type DataCap = z.output<typeof dataCap>;

/** On the asset of the kit's gateway, from the drivers of its links. Since 1.2. */
export const gatewayFeeds = {
  cellular: z.looseObject({ modems: z.array(cellularModem).max(feed_list_max), timestamp }),
  /** All links with a data cap. */
  data_caps: z.looseObject({ links: z.array(dataCap).max(feed_list_max), timestamp }),
  /** A data cap whose state has changed; an alarm. */
  data_cap: dataCap.extend({ timestamp }),
} as const satisfies FeedSet;
export type GatewayFeed = keyof typeof gatewayFeeds;
export type CellularModem = z.output<typeof cellularModem>;

export const noFeeds = {} as const satisfies FeedSet;

/** What connectors publish, by the kind of asset: a feed of one name may differ from kind to kind. */
export const publishedFeeds = {
  drone: droneFeeds,
  vendorcam: vendorcamFeeds,
  onvif: onvifFeeds,
  vendorradio: vendorradioFeeds,
  gateway: gatewayFeeds,
} as const satisfies Readonly<Record<string, FeedSet>>;

/** Changes of state that are no feed of the interface, on `event/{asset_id}/{name}`. */
export const edgeEvents = {
  asset_status: z.strictObject({
    status: assetStatus,
    reason: z.string().max(sentence_chars_max).nullable().describe('why, for the technician'),
  }),
  /** On the asset of the kit's gateway. */
  link_status: z.strictObject({
    name: z.string().min(1).max(name_chars_max),
    type: linkType.nullable(),
    status: linkStatus,
    reason: z.string().max(sentence_chars_max).nullable().describe('why, for the technician'),
    cause: linkCause.nullish().describe('why it is offline; when it is back: why it was. Since 1.2'),
    down_s: z
      .number()
      .nonnegative()
      .nullish()
      .describe('when it is back: how long it was offline. Since 1.2'),
  }),
} as const satisfies FeedSet;

/** Large, and of use beside what it belongs to: sent after everything that is live, at the pace of the backlog. */
export const feed_behind = 'alarm_picture' satisfies keyof typeof onvifFeeds & keyof typeof vendorcamFeeds;

const alarms: ReadonlySet<string> = new Set(
  [
    ...Object.keys(vendorcamFeeds),
    ...Object.keys(onvifFeeds),
    ...Object.keys(edgeEvents),
    'data_cap' satisfies GatewayFeed,
    'alarm' satisfies keyof typeof droneFeeds,
    'failsafe' satisfies keyof typeof droneFeeds,
  ].filter((feed) => feed !== feed_behind),
);

/** `alarm`: published on `event/{asset_id}/{feed}` and never thinned. `feed`: on `feed/{asset_id}/{feed}`. */
export function laneOfFeed(feed: string): Extract<Lane, 'alarm' | 'feed'> {
  return alarms.has(feed) ? 'alarm' : 'feed';
}
