/** The feeds of drones and vehicles; feeds.ts has the rules of all feeds. */
import { z } from 'zod';
import { latitude, longitude } from './assets.ts';
import { altitude, count, heading, percent, speed, timestamp, volt } from './feed-units.ts';
import { feed_list_max, name_chars_max, sentence_chars_max } from './limits.ts';

const altitude_amsl = z.number().nullable().optional().describe('metres above mean sea level');
const angle = z.number().min(-180).max(180).nullable();
const distance = z.number().nonnegative().nullable();
const fix_type = z
  .int()
  .min(0)
  .max(8)
  .nullable()
  .describe('0 no GPS, 1 no fix, 2 2D, 3 3D, 4 DGPS, 5 RTK float, 6 RTK fixed, 7 static, 8 PPP');
const digest = z.string().length(64).nullable();
const ampere = z.number().nullable().describe('amperes drawn; negative while charging');
/** What is optional is left out where the vehicle does not report it. */
const battery = {
  voltage: volt,
  current: ampere,
  remaining_pct: percent,
  function: z.enum(['all', 'propulsion', 'avionics', 'payload']).optional().describe('Since 1.2'),
  charge_state: z
    .enum(['ok', 'low', 'critical', 'emergency', 'failed', 'unhealthy', 'charging'])
    .optional()
    .describe('as the vehicle judges it. Since 1.2'),
  faults: z
    .array(z.string().max(name_chars_max))
    .max(feed_list_max)
    .optional()
    .describe('that a smart battery reports, such as cell_fail. Since 1.2'),
  consumed_mah: z.number().nonnegative().optional().describe('milliampere hours drawn so far. Since 1.2'),
  time_remaining_s: z.number().positive().optional().describe('seconds until it is empty. Since 1.2'),
  temperature_c: z.number().optional().describe('degrees Celsius. Since 1.2'),
};
const radioStrength = z
  .number()
  .min(0)
  .max(254)
  .nullable()
  .describe("the radio's own scale, 0..254; not dBm");

/** Of what a vehicle reports, worst first, as MAVLink and syslog number it from 0. */
export const severity = z.enum([
  'emergency',
  'alert',
  'critical',
  'error',
  'warning',
  'notice',
  'info',
  'debug',
]);
export type Severity = z.output<typeof severity>;

/** What a failsafe is about. `link`: the ground station; `rc`: the pilot's transmitter; `other`: the vehicle does not report it. */
export const failsafeType = z.enum([
  'battery',
  'link',
  'rc',
  'ekf',
  'fence',
  'terrain',
  'crash',
  'motor',
  'leak',
  'termination',
  'other',
]);
export type FailsafeType = z.output<typeof failsafeType>;

const vehicle_text = z.string().max(sentence_chars_max).describe('in the words of the vehicle');

export const droneFeeds = {
  /** Position that the autopilot estimates. Not published while there is no valid position. */
  gps: z.looseObject({
    lat: latitude,
    lon: longitude,
    alt_m: altitude,
    ground_speed: speed,
    heading,
    alt_amsl_m: altitude_amsl,
    relative_alt_m: z.number().nullable().optional().describe('metres above the home position'),
    home_distance_m: distance.optional().describe('metres from the home position, over ground. Since 1.2'),
  }),
  /** What the satellite receiver itself reports; of two, the one that has a fix. */
  gps_raw: z.looseObject({
    lat: latitude.nullable(),
    lon: longitude.nullable(),
    alt_m: altitude,
    fix_type,
    satellites_visible: count,
    alt_amsl_m: altitude_amsl,
    hdop: z.number().nonnegative().nullable().optional(),
    vdop: z.number().nonnegative().nullable().optional(),
    h_acc_m: distance.optional().describe('error of the position, metres. Since 1.2'),
    v_acc_m: distance.optional().describe('error of the altitude, metres. Since 1.2'),
    receiver: z.int().min(1).max(2).optional().describe('which of two receivers this is of. Since 1.2'),
    receivers: z
      .array(z.looseObject({ receiver: z.int(), fix_type, satellites_visible: count }))
      .max(feed_list_max)
      .optional()
      .describe('both, where there are two. Since 1.2'),
  }),
  /** The battery that keeps the vehicle moving, of several the worst; all of them in `batteries` when there are several. */
  battery: z.looseObject({
    ...battery,
    batteries: z
      .array(z.looseObject({ id: z.int(), ...battery }))
      .max(feed_list_max)
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
    flight_mode: z
      .string()
      .max(name_chars_max)
      .nullable()
      .describe("the autopilot's own name of the mode, such as GUIDED"),
    ekf_ok: z.boolean().nullable(),
    pre_arm_check: z.boolean().nullable().describe('true: the autopilot would let itself be armed'),
    system_status: z
      .string()
      .max(name_chars_max)
      .nullable()
      .optional()
      .describe('MAV_STATE without its prefix, such as STANDBY'),
    pre_arm_reasons: z
      .array(z.string().max(sentence_chars_max))
      .max(feed_list_max)
      .optional()
      .describe('why the check fails, in the words of the autopilot'),
    ekf_reasons: z.array(z.string().max(sentence_chars_max)).max(feed_list_max).optional(),
    high_latency: z
      .boolean()
      .optional()
      .describe('true: reported over a satellite, about once a minute. Since 1.2'),
    failures: z
      .array(z.string().max(name_chars_max))
      .max(feed_list_max)
      .optional()
      .describe('sensors and parts that are in use and do not work, such as compass. Since 1.2'),
    flight_time_s: z
      .number()
      .nonnegative()
      .optional()
      .describe(
        'seconds in the air, of this flight or the last; left out while its begin is unknown. Since 1.2',
      ),
  }),
  vfr_hud: z.looseObject({
    airspeed: z.number().nullable().describe('metres per second'),
    groundspeed: speed,
    throttle_pct: percent,
    climb_mps: z.number().nullable().describe('metres per second, upwards'),
    heading,
  }),
  /** Where the vehicle returns to. Since 1.2. */
  home: z.looseObject({
    lat: latitude,
    lon: longitude,
    alt_m: altitude,
    alt_amsl_m: altitude_amsl,
  }),
  /** As the autopilot estimates it. Since 1.2. */
  depth: z.looseObject({
    depth_m: z.number().describe('metres below the surface, where the vehicle was started; of submarines'),
  }),
  wind: z.looseObject({
    speed_mps: speed,
    direction: heading.describe('degrees clockwise from true north that the wind comes from'),
  }),
  /** Since 1.2. */
  vibration: z.looseObject({
    x: z.number().nullable().describe('metres per second squared; the same for y and z'),
    y: z.number().nullable(),
    z: z.number().nullable(),
    clipping: z.array(count).max(3).describe('samples beyond the range, by accelerometer, since the start'),
  }),
  /** The pilot's transmitter, as the vehicle receives it. Since 1.2. */
  rc: z.looseObject({
    rssi_pct: percent.describe('strength or quality of the link, as the receiver is set up to report it'),
    channels: count.describe('that are received; 0: there is no transmitter'),
  }),
  /** The ground below the vehicle, from terrain data or a rangefinder. Since 1.2. */
  terrain: z.looseObject({
    above_terrain_m: z.number().describe('metres from the ground up to the vehicle'),
    terrain_alt_amsl_m: z.number().describe('of the ground, metres above mean sea level'),
  }),
  /** The geofence of the autopilot. Since 1.2. */
  fence: z.looseObject({
    breached: z.boolean().nullable(),
    breach_count: count,
    breach_type: z.enum(['none', 'min_altitude', 'max_altitude', 'boundary']).nullable(),
  }),
  /** The mission that the autopilot has stored, and how far it is. Since 1.2. */
  mission: z.looseObject({
    count: count.describe('items'),
    current: count.describe('number of the item that it flies to, from 1'),
    state: z.enum(['no_mission', 'not_started', 'active', 'paused', 'complete']).nullable(),
    progress_pct: percent.describe('items that are behind it'),
    digest: digest.describe(
      'SHA-256 of the stored items as last read; null when they may have changed since',
    ),
    fence_digest: digest.optional(),
    rally_digest: digest.optional(),
  }),
  /** The latest texts of the vehicle, newest first; a text that repeats stands there once. Since 1.2. */
  messages: z.looseObject({
    messages: z
      .array(
        z.looseObject({
          text: vehicle_text,
          severity,
          timestamp: timestamp.describe('of the latest time'),
          count: z.int().positive().describe('how often it came'),
        }),
      )
      .max(feed_list_max),
  }),
  /** A new text of severity `warning` or worse; an alarm. Reasons why it cannot be armed are in `sys_status`. Since 1.2. */
  alarm: z.looseObject({ text: vehicle_text, severity, timestamp }),
  /** Which failsafes of the vehicle are active, as it reports them; an alarm, sent when that changes. Since 1.2. */
  failsafe: z.looseObject({
    detected: z.boolean().describe('at least one is active'),
    severity,
    types: z.array(failsafeType).max(failsafeType.options.length),
    causes: z
      .array(
        z.looseObject({
          type: failsafeType,
          since: timestamp,
          reason: vehicle_text.nullable().describe('why, in the words of the vehicle'),
        }),
      )
      .max(failsafeType.options.length),
    timestamp,
  }),
} as const;
