/**
 * The messages of the feeds of assets, by kind of asset, and the edges that are events without being feeds.
 * A message has the interface's fields, all of them; a value that is not known is null. The objects are loose, so that
 * a driver may add facts it knows (the optional fields below, and more in a later version) and no receiver may refuse them.
 */
import { z } from 'zod';
import { assetStatus, latitude, longitude } from './assets.ts';
import type { Lane } from './lanes.ts';
import { linkStatus, linkType } from './kit.ts';

export type FeedSet = Readonly<Record<string, z.ZodType>>;

/** The one datum of the interface. Null when only the height above mean sea level is known: the two differ by up to 106 m. */
const altitude = z.number().nullable().describe('metres above the WGS-84 ellipsoid');
const altitude_amsl = z.number().nullable().optional().describe('metres above mean sea level');
const speed = z.number().nonnegative().nullable().describe('metres per second');
const heading = z.number().min(0).max(360).nullable().describe('degrees clockwise from true north');
const angle = z.number().min(-180).max(180).nullable();
const percent = z.number().min(0).max(100).nullable();
const count = z.int().nonnegative().nullable();
const volt = z.number().nonnegative().nullable().describe('volts');
const ampere = z.number().nullable().describe('amperes drawn; negative while charging');
const radioStrength = z
  .number()
  .min(0)
  .max(254)
  .nullable()
  .describe("the radio's own scale, 0..254; not dBm");

export const droneFeeds = {
  /** Where the autopilot believes the drone to be. Not published while there is no valid position. */
  gps: z.looseObject({
    lat: latitude,
    lon: longitude,
    alt_m: altitude,
    ground_speed: speed,
    heading,
    alt_amsl_m: altitude_amsl,
    relative_alt_m: z.number().nullable().optional().describe('metres above the home position'),
  }),
  /** What the satellite receiver itself says. */
  gps_raw: z.looseObject({
    lat: latitude.nullable(),
    lon: longitude.nullable(),
    alt_m: altitude,
    fix_type: z
      .int()
      .min(0)
      .max(8)
      .nullable()
      .describe('0 no GPS, 1 no fix, 2 2D, 3 3D, 4 DGPS, 5 RTK float, 6 RTK fixed, 7 static, 8 PPP'),
    satellites_visible: count,
    alt_amsl_m: altitude_amsl,
    hdop: z.number().nonnegative().nullable().optional(),
    vdop: z.number().nonnegative().nullable().optional(),
  }),
  /** The main battery; all of them in `batteries` when there are several. */
  battery: z.looseObject({
    voltage: volt,
    current: ampere,
    remaining_pct: percent,
    batteries: z
      .array(z.looseObject({ id: z.int(), voltage: volt, current: ampere, remaining_pct: percent }))
      .optional(),
  }),
  attitude: z.looseObject({
    roll: angle.describe('degrees; positive: right side down'),
    pitch: angle.describe('degrees; positive: nose up'),
    yaw: angle.describe('degrees clockwise from true north, -180..180'),
  }),
  /** The telemetry radio, as the radio on the kit's side reports it. */
  radio: z.looseObject({
    rssi: radioStrength,
    remote_rssi: radioStrength,
    noise: radioStrength,
    rx_errors: count.describe('packets received with errors since the radio started'),
    remote_noise: radioStrength.optional(),
  }),
  sys_status: z.looseObject({
    armed: z.boolean().nullable(),
    flight_mode: z.string().nullable().describe("the autopilot's own name of the mode, such as GUIDED"),
    ekf_ok: z.boolean().nullable(),
    pre_arm_check: z.boolean().nullable().describe('true: the autopilot would let itself be armed'),
    system_status: z.string().nullable().optional().describe('MAV_STATE without its prefix, such as STANDBY'),
    pre_arm_reasons: z
      .array(z.string())
      .optional()
      .describe('why the check fails, in the words of the autopilot'),
    ekf_reasons: z.array(z.string()).optional(),
  }),
  vfr_hud: z.looseObject({
    airspeed: z.number().nullable().describe('metres per second'),
    groundspeed: speed,
    throttle_pct: percent,
    climb_mps: z.number().nullable().describe('metres per second, upwards'),
    heading,
  }),
} as const satisfies FeedSet;

/** What a vendor camera's detector knows; the names are the camera's own. */
export const aiType = z.enum(['people', 'vehicle', 'dog_cat', 'face', 'package']);
export type AiType = z.output<typeof aiType>;

/** UTC, when the connector saw it: cameras' own clocks are often wrong. */
const timestamp = z.iso.datetime();

export const vendorcamFeeds = {
  status: z.looseObject({
    online: z.boolean(),
    motion_alarm: z.boolean().nullable().describe('null while the camera is offline'),
    ai_alarm: z.boolean().nullable().describe('null while the camera is offline or when it has no detector'),
  }),
  motion: z.looseObject({ detected: z.boolean(), timestamp }),
  ai_detection: z.looseObject({
    detected: z.boolean(),
    types: z.array(aiType).describe('what is seen now; empty when detected is false'),
    timestamp,
  }),
} as const satisfies FeedSet;

export const onvifFeeds = {
  status: z.looseObject({ online: z.boolean(), timestamp }),
  motion: z.looseObject({ detected: z.boolean(), timestamp: timestamp.optional() }),
} as const satisfies FeedSet;

/** Partner assets are the cloud's: no connector publishes this feed, the service that takes the fixes does. */
export const partnerFeeds = {
  gps: z.looseObject({
    lat: latitude,
    lon: longitude,
    alt_m: altitude,
    bearing: heading,
    speed_mps: speed,
    source: z.string().min(1).describe('who gave the fix; `api`: Push Location'),
    timestamp,
  }),
} as const satisfies FeedSet;

export const noFeeds = {} as const satisfies FeedSet;

/** What connectors publish, by the kind of asset: a feed of one name may differ from kind to kind. */
export const publishedFeeds = {
  drone: droneFeeds,
  vendorcam: vendorcamFeeds,
  onvif: onvifFeeds,
} as const satisfies Readonly<Record<string, FeedSet>>;

/** Changes of state that are no feed of the interface, on `event/{asset_id}/{name}`. */
export const edgeEvents = {
  asset_status: z.strictObject({
    status: assetStatus,
    reason: z.string().nullable().describe('why, for the technician'),
  }),
  /** On the asset of the kit's gateway. */
  link_status: z.strictObject({
    name: z.string().min(1),
    type: linkType.nullable(),
    status: linkStatus,
    reason: z.string().nullable().describe('why, for the technician'),
  }),
} as const satisfies FeedSet;

const alarms: ReadonlySet<string> = new Set([
  ...Object.keys(vendorcamFeeds),
  ...Object.keys(onvifFeeds),
  ...Object.keys(edgeEvents),
]);

/** `alarm`: published on `event/{asset_id}/{feed}` and never thinned. `feed`: on `feed/{asset_id}/{feed}`. */
export function laneOfFeed(feed: string): Extract<Lane, 'alarm' | 'feed'> {
  return alarms.has(feed) ? 'alarm' : 'feed';
}
