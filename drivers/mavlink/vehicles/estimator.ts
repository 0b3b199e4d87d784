/** Health of the position estimator. Both autopilots use the same bits with different meanings, hence two functions. */
import type { Messages } from '../wire/messages.ts';

export interface EstimatorHealth {
  readonly ok: boolean;
  /** Whether it has an absolute horizontal position at all. */
  readonly has_position: boolean;
  /** Why it is not ok. */
  readonly reasons: readonly string[];
}

const attitude = 1;
/** Horizontal and vertical. */
const velocity = 2 | 4;
const absolute_horizontal = 16;
const absolute_vertical = 32;
const constant_position = 128;
const predicted_absolute = 512;
const ardupilot_uninitialized = 1024;
const ardupilot_gps_glitch = 32768;
const px4_gps_glitch = 1024;
const px4_accel_error = 2048;

/** Default of ArduPilot's FS_EKF_THRESH, above which its failsafe acts. */
const ardupilot_variance_max = 0.8;
/** At a ratio of 1 PX4 rejects the measurement. */
const px4_ratio_max = 1;

/** Conditions of an unhealthy estimate, with their reasons. */
type Faults<T> = readonly (readonly [isFaulty: (report: T, armed: boolean) => boolean, reason: string])[];

const ardupilot_faults: Faults<Messages['EKF_STATUS_REPORT']> = [
  [({ flags }) => has(flags, ardupilot_uninitialized), 'not initialised'],
  [({ flags }) => !has(flags, attitude), 'no attitude'],
  [({ flags }) => !has(flags, velocity), 'no velocity'],
  // A disarmed vehicle has only a predicted absolute position.
  [
    ({ flags }, armed) => !has(flags, absolute_horizontal) && (armed || !has(flags, predicted_absolute)),
    'no horizontal position',
  ],
  [({ flags }) => !has(flags, absolute_vertical), 'no vertical position'],
  [({ flags }) => has(flags, constant_position), 'constant position mode'],
  [({ flags }) => has(flags, ardupilot_gps_glitch), 'GPS glitch'],
  [(report) => exceeds(report.velocity_variance, ardupilot_variance_max), 'velocity variance'],
  [(report) => exceeds(report.pos_horiz_variance, ardupilot_variance_max), 'horizontal position variance'],
  [(report) => exceeds(report.pos_vert_variance, ardupilot_variance_max), 'vertical position variance'],
  [(report) => exceeds(report.compass_variance, ardupilot_variance_max), 'compass variance'],
];

const px4_faults: Faults<Messages['ESTIMATOR_STATUS']> = [
  [({ flags }) => !has(flags, attitude), 'no attitude'],
  [({ flags }) => !has(flags, velocity), 'no velocity'],
  [({ flags }) => !has(flags, absolute_horizontal), 'no horizontal position'],
  [({ flags }) => !has(flags, absolute_vertical), 'no vertical position'],
  [({ flags }) => has(flags, px4_gps_glitch), 'GPS glitch'],
  [({ flags }) => has(flags, px4_accel_error), 'accelerometer error'],
  [(status) => exceeds(status.vel_ratio, px4_ratio_max), 'velocity innovation'],
  [(status) => exceeds(status.pos_horiz_ratio, px4_ratio_max), 'horizontal position innovation'],
  [(status) => exceeds(status.pos_vert_ratio, px4_ratio_max), 'vertical position innovation'],
  [(status) => exceeds(status.mag_ratio, px4_ratio_max), 'compass innovation'],
];

/** `EKF_STATUS_REPORT`. */
export function ardupilotHealth(report: Messages['EKF_STATUS_REPORT'], armed: boolean): EstimatorHealth {
  const { flags } = report;
  const reasons = ardupilot_faults
    .filter(([isFaulty]) => isFaulty(report, armed))
    .map(([, reason]) => reason);
  const has_position = has(flags, absolute_horizontal) && !has(flags, constant_position);
  return { ok: reasons.length === 0, has_position, reasons };
}

/** `ESTIMATOR_STATUS`. PX4 sets the constant-position bit also in good health on the ground, so it is ignored. */
export function px4Health(status: Messages['ESTIMATOR_STATUS']): EstimatorHealth {
  const reasons = px4_faults.filter(([isFaulty]) => isFaulty(status, false)).map(([, reason]) => reason);
  return { ok: reasons.length === 0, has_position: has(status.flags, absolute_horizontal), reasons };
}

/** Whether all of the bits are set. */
function has(flags: number, bits: number): boolean {
  return (flags & bits) === bits;
}

/** NaN is ignored: PX4 sends it for tests that it does not run. */
function exceeds(value: number, limit: number): boolean {
  return Number.isFinite(value) && value >= limit;
}
