/** The situation of a vehicle that nothing keeps from its commands. */
import type { Situation } from '../../../../../drivers/mavlink/vehicles/situation.ts';

/** A copter with ArduPilot on the ground, unless `about` says otherwise. */
export const situation = (about: Partial<Situation>): Situation => ({
  autopilot: 'ardupilot',
  kind: 'copter',
  is_boat: false,
  isOverturned: false,
  is_high_latency: false,
  armed: false,
  mode: 'LOITER',
  modes: new Map(),
  airborne: false,
  vtol_flight: null,
  position: undefined,
  home: undefined,
  undulation_m: 47,
  estimator: { ok: true, hasPosition: true, reasons: [] },
  pre_arm_check: true,
  pre_arm_reasons: [],
  fence_rule: 'each',
  ...about,
});
