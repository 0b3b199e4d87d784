/** Health of the position estimator. The two autopilots give the same bits different meanings, hence two readings. */
import type { Messages } from './messages.ts';

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

/** Default of ArduPilot's FS_EKF_THRESH, above which it acts itself. */
const ardupilot_variance_max = 0.8;
/** A ratio of 1 is where PX4 rejects the measurement. */
const px4_ratio_max = 1;

/** What makes an estimate bad, in words. */
type Faults<T> = readonly (readonly [isSo: (report: T, armed: boolean) => boolean, reason: string])[];

const ardupilot_faults: Faults<Messages['EKF_STATUS_REPORT']> = [
  [({ flags }) => has(flags, ardupilot_uninitialized), 'not initialised'],
  [({ flags }) => !has(flags, attitude), 'no attitude'],
  [({ flags }) => !has(flags, velocity), 'no velocity'],
  // A disarmed vehicle has no absolute position yet, only the promise of one.
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
  const reasons = ardupilot_faults.filter(([isSo]) => isSo(report, armed)).map(([, reason]) => reason);
  const has_position = has(flags, absolute_horizontal) && !has(flags, constant_position);
  return { ok: reasons.length === 0, has_position, reasons };
}

/** `ESTIMATOR_STATUS`. PX4 sets the bit of the constant position also while it stands still in good health: it says nothing. */
export function px4Health(status: Messages['ESTIMATOR_STATUS']): EstimatorHealth {
  const reasons = px4_faults.filter(([isSo]) => isSo(status, false)).map(([, reason]) => reason);
  return { ok: reasons.length === 0, has_position: has(status.flags, absolute_horizontal), reasons };
}

/** All of the bits. */
function has(flags: number, bits: number): boolean {
  return (flags & bits) === bits;
}

/** A value that is not a number says nothing: PX4 sends NaN for tests it does not run. */
function exceeds(value: number, limit: number): boolean {
  return Number.isFinite(value) && value >= limit;
}
