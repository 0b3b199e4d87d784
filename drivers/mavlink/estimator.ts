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
const horizontal_velocity = 2;
const vertical_velocity = 4;
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

/** `EKF_STATUS_REPORT`. A disarmed vehicle has no absolute position yet, only the promise of one. */
export function ardupilotHealth(report: Messages['EKF_STATUS_REPORT'], armed: boolean): EstimatorHealth {
  const { flags } = report;
  const has_position = (flags & absolute_horizontal) !== 0;
  const will_have_position = has_position || (!armed && (flags & predicted_absolute) !== 0);
  return verdict(has_position && (flags & constant_position) === 0, [
    [(flags & ardupilot_uninitialized) !== 0, 'not initialised'],
    [(flags & attitude) === 0, 'no attitude'],
    [
      (flags & (horizontal_velocity | vertical_velocity)) !== (horizontal_velocity | vertical_velocity),
      'no velocity',
    ],
    [!will_have_position, 'no horizontal position'],
    [(flags & absolute_vertical) === 0, 'no vertical position'],
    [(flags & constant_position) !== 0, 'constant position mode'],
    [(flags & ardupilot_gps_glitch) !== 0, 'GPS glitch'],
    [exceeds(report.velocity_variance, ardupilot_variance_max), 'velocity variance'],
    [exceeds(report.pos_horiz_variance, ardupilot_variance_max), 'horizontal position variance'],
    [exceeds(report.pos_vert_variance, ardupilot_variance_max), 'vertical position variance'],
    [exceeds(report.compass_variance, ardupilot_variance_max), 'compass variance'],
  ]);
}

/** `ESTIMATOR_STATUS`. PX4 sets the bit of the constant position also while it stands still in good health: it says nothing. */
export function px4Health(status: Messages['ESTIMATOR_STATUS']): EstimatorHealth {
  const { flags } = status;
  const has_position = (flags & absolute_horizontal) !== 0;
  return verdict(has_position, [
    [(flags & attitude) === 0, 'no attitude'],
    [
      (flags & (horizontal_velocity | vertical_velocity)) !== (horizontal_velocity | vertical_velocity),
      'no velocity',
    ],
    [!has_position, 'no horizontal position'],
    [(flags & absolute_vertical) === 0, 'no vertical position'],
    [(flags & px4_gps_glitch) !== 0, 'GPS glitch'],
    [(flags & px4_accel_error) !== 0, 'accelerometer error'],
    [exceeds(status.vel_ratio, px4_ratio_max), 'velocity innovation'],
    [exceeds(status.pos_horiz_ratio, px4_ratio_max), 'horizontal position innovation'],
    [exceeds(status.pos_vert_ratio, px4_ratio_max), 'vertical position innovation'],
    [exceeds(status.mag_ratio, px4_ratio_max), 'compass innovation'],
  ]);
}

function verdict(
  has_position: boolean,
  faults: readonly (readonly [isSo: boolean, reason: string])[],
): EstimatorHealth {
  const reasons = faults.filter(([isSo]) => isSo).map(([, reason]) => reason);
  return { ok: reasons.length === 0, has_position, reasons };
}

/** A value that is not a number says nothing: PX4 sends NaN for tests it does not run. */
function exceeds(value: number, limit: number): boolean {
  return Number.isFinite(value) && value >= limit;
}
