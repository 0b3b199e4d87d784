/** The messages that make a vehicle circle around a place, and the effect that completes the command. */
import type { Kind } from '../vehicles/kind.ts';
import { modeNumbers, px4_orbit_mode } from '../vehicles/modes.ts';
import type { Situation } from '../vehicles/situation.ts';
import type { Height } from './altitude.ts';
import type { Order } from './exchange.ts';
import type { Waypoint } from './gate.ts';
import { gotoOrder, sendCommand } from './orders.ts';
import { isNear } from '../reports/target-shown.ts';
import { texts } from './texts.ts';

export interface Orbit extends Waypoint {
  readonly radius_m: number;
  readonly clockwise: boolean;
  /** The autopilot's own when omitted. */
  readonly speed_mps?: number | undefined;
}

const command_orbit = 34;
const frame_global = 0;
const radius_tolerance_m = 0.5;
/** The vehicle reports its circle twice a second; the report may have to be requested. */
const effect_wait_ms = 6_000;
const counter_clockwise = 1;

/**
 * `circle`: a command for it, whose parameters the autopilot reports. `loiter`: a plane circles around each point that it is sent
 * to. ArduCopter has neither: its CIRCLE mode takes the place ahead of it, and the radius from a stored parameter.
 */
export function orbitOf({
  autopilot,
  kind,
}: Pick<Situation, 'autopilot' | 'kind'>): 'circle' | 'loiter' | undefined {
  if (autopilot === 'px4') return flying.has(kind) ? 'circle' : undefined;
  return autopilot === 'ardupilot' && kind === 'plane' ? 'loiter' : undefined;
}

const flying: ReadonlySet<Kind> = new Set(['copter', 'plane', 'vtol']);

export function orbitOrder(orbit: Orbit, height: Height, situation: Situation): Order {
  return orbitOf(situation) === 'circle'
    ? circleOrder(orbit, height, situation)
    : loiterOrder(orbit, height, situation);
}

/** An ArduPlane reports the place, not the radius. */
function loiterOrder(orbit: Orbit, height: Height, situation: Situation): Order {
  const circle = { param3: orbit.radius_m, param4: orbit.clockwise ? 0 : counter_clockwise };
  const { fallback: _, ...order } = gotoOrder(orbit, height, situation, circle);
  return { ...order, what: 'orbit' };
}

/** PX4 reads the altitude as above sea level; it faces the place while it flies around it. */
function circleOrder(orbit: Orbit, { amsl_m }: Height, { autopilot, kind }: Situation): Order {
  const { lat, lon, radius_m, clockwise, speed_mps = Number.NaN } = orbit;
  const radius = clockwise ? radius_m : -radius_m;
  const as_it_is = Number.NaN;
  const fields = { command: command_orbit, param1: radius, param2: speed_mps, param3: as_it_is, param4: 0 };
  // Planes circle in their hold mode.
  const hold_mode = kind === 'copter' ? undefined : modeNumbers(autopilot, kind, 'LOITER')?.custom_mode;
  return {
    what: 'orbit',
    command: command_orbit,
    forms: ['int', 'long'],
    send: (contact, how) => {
      contact.requestReport('circle');
      return sendCommand(contact, { ...fields, place: { lat, lon, z_m: amsl_m, frame: frame_global } }, how);
    },
    may_resend: false,
    expected: texts.expects_orbit,
    effect_wait_ms,
    isObserved: ({ latest }, since_ms) => {
      const report = latest.since('ORBIT_EXECUTION_STATUS', since_ms);
      const mode = latest.since('HEARTBEAT', since_ms)?.custom_mode;
      if (!report || mode === undefined || (mode !== px4_orbit_mode && mode !== hold_mode)) return false;
      const place = { lat_int: report.x, lon_int: report.y, alt: report.z };
      return Math.abs(report.radius - radius) <= radius_tolerance_m && isNear(place, { lat, lon, amsl_m });
    },
  };
}
