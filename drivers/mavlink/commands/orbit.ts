/** The command `orbit`: circles around a place. */
import { z } from 'zod';
import { latitude, longitude } from '../../../src/contract/assets.ts';
import type { JsonObject } from '../../../src/contract/json.ts';
import { type Command, type CommandContext, defineCommand } from '../../../src/driver/command.ts';
import type { MavlinkOptions } from '../options.ts';
import type { Situation } from '../vehicles/situation.ts';
import { type Bounded, notSent, reach } from './admission.ts';
import { altitudeInput } from './altitude.ts';
import { carryOut } from './exchange.ts';
import { admitOrbit, type OrbitLimits } from './orbit-gate.ts';
import { orbitOf, orbitOrder, type Orbit } from './orbit-order.ts';
import { texts } from './texts.ts';

const radius_min_m = 1;
/** Planes cannot turn more tightly. */
const radius_min_plane_m = 20;
/** PX4 refuses more, unless it is set otherwise. */
const radius_max_m = 1_000;
const speed_min_mps = 0.1;

/** Returns the command for vehicles that have it. */
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
  const { to, situation } = reach(vehicle, context);
  const height = admitOrbit(orbit, situation, options);
  if (typeof height === 'string') throw notSent(texts.about(to.name, height));
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
    alt_amsl_m: height.amsl_m,
    height_above_home_m: height.above_home_m,
    alt_datum: options.goto.datum,
    // An ArduPlane reports the place of its circle only.
    radius_observed: orbitOf(situation) === 'circle',
    ...evidence,
  };
}
