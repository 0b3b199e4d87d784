/**
 * The takeoff of an ArduPlane: its TAKEOFF mode, which climbs to TKOFF_ALT above the ground, TKOFF_DIST ahead, and circles there. The
 * command has no height, and the driver changes no parameter, so the requested height must be the configured one.
 */
import type { JsonObject } from '../../../src/contract/json.ts';
import type { CommandContext } from '../../../src/toolkit/driver/command.ts';
import { CommandRefused } from '../../../src/platform/errors.ts';
import type { MavlinkOptions } from '../options.ts';
import { readParameters } from './parameters.ts';
import { arduplane_takeoff_mode } from '../vehicles/modes.ts';
import type { Situation } from '../vehicles/situation.ts';
import { admit, type Bounded, notSent } from './admission.ts';
import type { Height } from './altitude.ts';
import { awaitArrival } from './arrival.ts';
import { carryOut } from './exchange.ts';
import { admitHeight, obstacleToTakeOff, outOfFence, tooFar } from './gate.ts';
import { offset } from '../vehicles/geo.ts';
import { isAirborne, modeOrder } from './orders.ts';
import { texts } from './texts.ts';
import type { Addressee } from '../vehicles/addressee.ts';
import type { Order } from './ways.ts';

/** The run on the ground, until the autopilot reports that it flies. */
const effect_wait_ms = 20_000;
const height_tolerance_m = 3;
const asked_tolerance_m = 1;
const heading_unknown = 65_535;

export async function takeOffAsPlane(
  vehicle: Bounded,
  height_m: number,
  { options, context }: { readonly options: MavlinkOptions; readonly context: CommandContext },
): Promise<JsonObject> {
  const { to: reader } = await admit(vehicle, context, obstacleToTakeOff);
  const climb = await readClimb(reader, context);
  // The reading took time.
  const { to, situation } = await admit(vehicle, context, obstacleToTakeOff);
  const height = admitClimb({ to, situation }, { ...climb, height_m }, options.goto);
  if (typeof height === 'string') throw notSent(texts.about(to.name, height));
  const evidence = await carryOut(to, takeoffModeOrder(situation), context);
  const left_m = ({ latest }: Addressee['contact'], since_ms: number): number | undefined => {
    const at = latest.since('GLOBAL_POSITION_INT', since_ms);
    return at && Math.max(0, height.amsl_m - at.alt / 1_000);
  };
  const modes = [arduplane_takeoff_mode];
  await awaitArrival(to, { what: 'takeoff', left_m, tolerance_m: height_tolerance_m, modes }, context);
  return { alt_amsl_m: height.amsl_m, height_above_home_m: height.above_home_m, ...evidence };
}

interface Climb {
  /** Above where it stands. */
  readonly alt_m: number;
  /** Ahead of where it stands. */
  readonly distance_m: number;
}

async function readClimb(to: Addressee, context: CommandContext): Promise<Climb> {
  const names = ['TKOFF_ALT', 'TKOFF_DIST'] as const;
  const [alt_m, distance_m] = await readParameters(to, names, context).then(
    ({ values }) => names.map((name) => values.get(name) ?? undefined),
    (error: unknown) => {
      throw error instanceof CommandRefused ? notSent(error.message) : error;
    },
  );
  if (alt_m === undefined) throw notSent(texts.about(to.name, texts.takeoff_param('TKOFF_ALT')));
  if (distance_m === undefined) throw notSent(texts.about(to.name, texts.takeoff_param('TKOFF_DIST')));
  return { alt_m, distance_m };
}

/** Returns the height that it will climb to, or the reason against it. */
function admitClimb(
  { to, situation }: { readonly to: Addressee; readonly situation: Situation },
  { alt_m, distance_m, height_m }: Climb & { readonly height_m: number },
  options: MavlinkOptions['goto'],
): Height | string {
  const { position, home } = situation;
  if (!position || !home) return texts.position_missing;
  const above_home_m = Math.round((position.alt_amsl_m + alt_m - home.alt_amsl_m) * 10) / 10;
  if (Math.abs(above_home_m - height_m) > asked_tolerance_m) return texts.takeoff_height(above_home_m, alt_m);
  // It also reports whether it is a quadplane, which takes off otherwise.
  if (!to.contact.latest.last('EXTENDED_SYS_STATE')) return texts.airborne_unknown;
  const hdg = to.contact.latest.last('GLOBAL_POSITION_INT')?.hdg ?? heading_unknown;
  if (hdg === heading_unknown && options.geofence) return texts.takeoff_course_unknown;
  const end = offset(position, { bearing_deg: hdg === heading_unknown ? 0 : hdg / 100, metres: distance_m });
  return (
    tooFar(end, home, 'home', options) ??
    outOfFence(position, end, options) ??
    admitHeight(above_home_m, situation, { ...options, datum: 'relative' })
  );
}

function takeoffModeOrder(situation: Situation): Order {
  const numbers = { main: arduplane_takeoff_mode, sub: 0, custom_mode: arduplane_takeoff_mode };
  return {
    ...modeOrder('TAKEOFF', numbers, situation),
    what: 'takeoff',
    may_resend: false,
    obstacle: obstacleToTakeOff,
    expected: texts.expects_airborne,
    effect_wait_ms,
    shown_in: 'EXTENDED_SYS_STATE',
    isObserved: (contact, since_ms) =>
      contact.latest.since('HEARTBEAT', since_ms)?.custom_mode === arduplane_takeoff_mode &&
      isAirborne(contact, since_ms),
  };
}
