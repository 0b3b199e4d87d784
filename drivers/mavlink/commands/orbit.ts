/** The command `orbit`: circles around a place. */
import { z } from 'zod';
import { latitude, longitude } from '../../../src/contract/assets.ts';
import type { JsonObject } from '../../../src/contract/json.ts';
import { type Command, type CommandContext, defineCommand } from '../../../src/toolkit/driver/command.ts';
import type { MavlinkOptions } from '../options.ts';
import type { Situation } from '../vehicles/situation.ts';
import { admitFlight, type Bounded, notSent } from './admission.ts';
import { altitudeInput, type Height, shownHeight } from './altitude.ts';
import { carryOut } from './exchange.ts';
import { texts } from './texts.ts';
import { obstacleToRepeat, type Waypoint } from './gate.ts';
import { distance_m, distanceToSides_m, type Place } from '../vehicles/geo.ts';
import type { Kind } from '../reports/kind.ts';
import { modeNumbers, px4_orbit_mode } from '../vehicles/modes.ts';
import { gotoOrder, sendCommand } from './orders.ts';
import { isNear } from './target-shown.ts';
import type { Order } from './ways.ts';

const radius_min_m = 1;
/** Planes cannot turn more tightly. */
const radius_min_plane_m = 20;
/** PX4 refuses more, unless it is set otherwise. */
const radius_max_m = 1_000;
const speed_min_mps = 0.1;

export function orbitCommand(
  vehicle: Bounded,
  options: MavlinkOptions,
  about: Pick<Situation, 'autopilot' | 'kind'>,
): readonly Command[] {
  const kind_of_orbit = orbitOf(about);
  if (!kind_of_orbit) return [];
  const radius_m = z
    .number()
    .min(about.kind === 'plane' ? radius_min_plane_m : radius_min_m)
    .max(radius_max_m)
    .describe('metres')
    .meta({ title: 'Radius', 'x-kit-unit': 'm' });
  const clockwise = z
    .boolean()
    .default(true)
    .describe('direction as seen from above')
    .meta({ title: 'Clockwise' });
  const speed_mps = z
    .number()
    .min(speed_min_mps)
    .max(options.speed_max_mps)
    .optional()
    .describe("metres per second over ground; the autopilot's own when omitted")
    .meta({ title: 'Speed', 'x-kit-unit': 'm/s' });
  const place = { lat: latitude, lon: longitude, alt_m: altitudeInput(options.goto, about.kind) };
  const circle = { ...place, radius_m, clockwise };
  const input =
    kind_of_orbit === 'circle' ? z.strictObject({ ...circle, speed_mps }) : z.strictObject(circle);
  const { height_min_m, height_max_m } = options.goto;
  return [
    defineCommand({
      name: 'orbit',
      description: `Fly around a point in a circle, ${height_min_m} to ${height_max_m} m above home, until another command. Completed when the vehicle reports the circle.`,
      risk_level: 'high',
      requires_approval: true,
      input,
      handle: async (orbit, context) => flyAround(vehicle, orbit, { options, context }),
    }),
  ];
}

async function flyAround(
  vehicle: Bounded,
  orbit: Orbit,
  { options, context }: { readonly options: OrbitLimits; readonly context: CommandContext },
): Promise<JsonObject> {
  const { to, situation, height } = await admitFlight(
    vehicle,
    {
      targetOf: () => orbit,
      options: options.goto,
      radius_m: orbit.radius_m,
      admit: (now) => obstacleToOrbit(orbit, now, options),
    },
    context,
  );
  // ORBIT_EXECUTION_STATUS does not exist in MAVLink 1.
  if (orbitOf(situation) === 'circle' && to.contact.version === 1)
    throw notSent(texts.about(to.name, texts.needs_mavlink2('orbit')));
  const evidence = await carryOut(to, orbitOrder(orbit, height, situation), context);
  const { lat, lon, radius_m, clockwise } = orbit;
  return {
    lat,
    lon,
    radius_m,
    clockwise,
    ...shownHeight(height, options.goto.datum),
    // An ArduPlane reports the place of its circle only.
    radius_observed: orbitOf(situation) === 'circle',
    ...evidence,
  };
}

// Preconditions of a circle: all of it must be within the local limits.

type OrbitLimits = Pick<MavlinkOptions, 'goto'>;

/** PX4 ignores a speed that it cannot fly on the circle, and accepts the command. */
const px4_speed_max_mps = 10;
const px4_acceleration_max_mps2 = 2;

/** Returns the reason against a circle around a place that may be flown to. */
function obstacleToOrbit(
  orbit: Orbit,
  situation: Situation,
  { goto: options }: OrbitLimits,
): string | undefined {
  if (!orbitOf(situation)) return texts.no_orbit(situation.kind);
  const { position, home } = situation;
  const { radius_m, speed_mps } = orbit;
  const isTooFar = (from: Place | undefined): boolean =>
    from !== undefined && distance_m(orbit, from) + radius_m > options.distance_max_m;
  if (isTooFar(position)) return texts.orbit_far('the vehicle', options.distance_max_m);
  if (isTooFar(home)) return texts.orbit_far('home', options.distance_max_m);
  if (options.geofence && distanceToSides_m(orbit, options.geofence) < radius_m) return texts.orbit_outside;
  const fastest_mps = Math.min(px4_speed_max_mps, Math.sqrt(px4_acceleration_max_mps2 * radius_m));
  return speed_mps !== undefined && speed_mps >= fastest_mps
    ? texts.orbit_fast(speed_mps, radius_m, fastest_mps.toFixed(1))
    : undefined;
}

// The messages that make a vehicle circle around a place, and the effect that completes the command.

interface Orbit extends Waypoint {
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
function orbitOf({
  autopilot,
  kind,
}: Pick<Situation, 'autopilot' | 'kind'>): 'circle' | 'loiter' | undefined {
  if (autopilot === 'px4') return flying.has(kind) ? 'circle' : undefined;
  return autopilot === 'ardupilot' && kind === 'plane' ? 'loiter' : undefined;
}

const flying: ReadonlySet<Kind> = new Set(['copter', 'plane', 'vtol']);

function orbitOrder(orbit: Orbit, height: Height, situation: Situation): Order {
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
      contact.streams?.requestReport('circle');
      return sendCommand(contact, { ...fields, place: { lat, lon, z_m: amsl_m, frame: frame_global } }, how);
    },
    may_resend: false,
    obstacle: obstacleToRepeat,
    expected: texts.expects_orbit,
    effect_wait_ms,
    shown_in: 'ORBIT_EXECUTION_STATUS',
    isObserved: ({ latest }, since_ms) => {
      const report = latest.since('ORBIT_EXECUTION_STATUS', since_ms);
      const mode = latest.since('HEARTBEAT', since_ms)?.custom_mode;
      if (!report || mode === undefined || (mode !== px4_orbit_mode && mode !== hold_mode)) return false;
      const place = { lat_int: report.x, lon_int: report.y, alt: report.z };
      return Math.abs(report.radius - radius) <= radius_tolerance_m && isNear(place, { lat, lon, amsl_m });
    },
  };
}
