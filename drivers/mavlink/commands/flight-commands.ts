/** Commands of a flight beside those of the interface: take off, hold, land, change altitude and speed. */
import { z } from 'zod';
import type { JsonObject } from '../../../src/contract/json.ts';
import {
  type Command,
  type CommandContext,
  defineCommand,
  noInput,
} from '../../../src/toolkit/driver/command.ts';
import type { MavlinkOptions } from '../options.ts';
import type { Kind } from '../reports/kind.ts';
import type { Contact } from '../vehicles/contact.ts';
import { ardusub_depth_mode, ardusub_surface_mode, modeNumbers } from '../vehicles/modes.ts';
import type { Situation } from '../vehicles/situation.ts';
import { admit, admitFlight, type Bounded, notSent } from './admission.ts';
import { altitudeInput, type Height } from './altitude.ts';
import { awaitArrival, journeyUp } from './arrival.ts';
import { changeMode, hold } from './change-mode.ts';
import { carryOut } from './exchange.ts';
import {
  admitTakeoff,
  isArduPlane,
  obstacleToHold,
  obstacleToMode,
  obstacleToSpeed,
  obstacleToTakeOff,
  type Waypoint,
} from './gate.ts';
import { gotoOrder, modeOrder, speedOrder, takeoffOrder } from './orders.ts';
import { takeOffAsPlane } from './plane-takeoff.ts';
import { observeSpeed, speedOf } from './speed-effect.ts';
import { texts } from './texts.ts';
import type { Order } from './ways.ts';

/** A climb takes longer than an answer. */
const takeoff_timeout_ms = 60_000;
const speed_min_mps = 0.1;
/** What it reports after this time is no longer from before the command; it reports once a second. */
const surface_settle_ms = 1_200;
const surface_effect_wait_ms = 5_000;
/** SURFACE_DEPTH is at most a metre. */
const surface_depth_max_mm = 1_250;

export function flightCommands(vehicle: Bounded, options: MavlinkOptions, kind: Kind): readonly Command[] {
  return [
    takeoffCommand(vehicle, options),
    ...safetyCommands(vehicle),
    altitudeCommand(vehicle, options, kind),
    speedCommand(vehicle, options),
  ];
}

function takeoffCommand(vehicle: Bounded, options: MavlinkOptions): Command {
  const { height_min_m, height_max_m } = options.goto;
  const height_m = z
    .number()
    .min(height_min_m)
    .max(height_max_m)
    .describe('metres above home')
    .meta({ title: 'Height', 'x-kit-datum': 'relative', 'x-kit-unit': 'm' });
  return defineCommand({
    name: 'takeoff',
    description: `Take off to ${height_min_m} to ${height_max_m} m above home: straight up, an ArduPlane ahead to its TKOFF_ALT. The vehicle must be armed; an ArduCopter or quadplane must be in GUIDED. Completed at that height.`,
    risk_level: 'high',
    requires_approval: true,
    timeout_ms: takeoff_timeout_ms,
    input: z.strictObject({ height_m }),
    handle: async (input, context) => {
      const { situation } = await admit(vehicle, context, obstacleToTakeOff);
      return isArduPlane(situation)
        ? takeOffAsPlane(vehicle, input.height_m, { options, context })
        : takeOff(vehicle, input.height_m, context);
    },
  });
}

async function takeOff(vehicle: Bounded, height_m: number, context: CommandContext): Promise<JsonObject> {
  const check = (now: Situation): Height | string => obstacleToTakeOff(now) ?? admitTakeoff(height_m, now);
  const { to, situation, checked: height } = await admit(vehicle, context, check);
  const evidence = await carryOut(to, takeoffOrder(height, situation), context);
  await awaitArrival(to, journeyUp(height, situation), context);
  return { alt_amsl_m: height.amsl_m, height_above_home_m: height.above_home_m, ...evidence };
}

function safetyCommands(vehicle: Bounded): readonly Command[] {
  const hold_here = defineCommand({
    name: 'hold',
    description:
      'Stop and stay where it is, whatever the sticks of a transmitter say; planes circle, and a hovering quadplane climbs and sinks with the throttle stick. Pre-empts other commands.',
    risk_level: 'medium',
    requires_approval: false,
    input: noInput,
    handle: async (_input, context) => hold('hold', await admit(vehicle, context, obstacleToHold), context),
  });
  const land = defineCommand({
    name: 'land',
    description: 'Land where it is. Pre-empts other commands.',
    risk_level: 'medium',
    requires_approval: false,
    input: noInput,
    handle: async (_input, context) => {
      const { to, situation } = await admit(vehicle, context, (now) => obstacleToMode(now, 'LAND'), 'any');
      const numbers = modeNumbers(situation.autopilot, situation.kind, 'LAND', situation.modes);
      if (!numbers) throw notSent(texts.mode_unsupported(to.name, 'LAND'));
      const order = { ...modeOrder('LAND', numbers, situation), what: 'land' };
      return changeMode(to, order, context);
    },
  });
  return [hold_here, land, surfaceCommand(vehicle)];
}

/** The counterpart of landing for an ArduSub. */
function surfaceCommand(vehicle: Bounded): Command {
  return defineCommand({
    name: 'surface',
    description: 'Rise to the surface and stay there. Pre-empts other commands.',
    risk_level: 'medium',
    requires_approval: false,
    input: noInput,
    handle: async (_input, context) => {
      const { to, situation } = await admit(vehicle, context, obstacleToHold);
      return changeMode(to, surfaceOrder(situation), context);
    },
  });
}

/** At the surface an ArduSub leaves SURFACE without a command, perhaps before a heartbeat has shown it. */
function surfaceOrder(situation: Situation): Order {
  const numbers = { main: ardusub_surface_mode, sub: 0, custom_mode: ardusub_surface_mode };
  const order = modeOrder('SURFACE', numbers, situation);
  return {
    ...order,
    what: 'surface',
    expected: texts.expects_surface,
    effect_wait_ms: surface_effect_wait_ms,
    isObserved: (contact, since_ms) =>
      order.isObserved(contact, since_ms) || hasSurfaced(contact, since_ms + surface_settle_ms),
  };
}

/** Whether it keeps its depth at the surface. Home is at the surface; without a sensor of its depth it reports 0. */
function hasSurfaced({ latest }: Contact, since_ms: number): boolean {
  const at = latest.since('GLOBAL_POSITION_INT', since_ms);
  if (!at || (at.alt === 0 && at.relative_alt === 0)) return false;
  const mode = latest.since('HEARTBEAT', since_ms)?.custom_mode;
  return mode === ardusub_depth_mode && at.relative_alt >= -surface_depth_max_mm;
}

function altitudeCommand(vehicle: Bounded, options: MavlinkOptions, kind: Kind): Command {
  return defineCommand({
    name: 'set_altitude',
    description:
      'Stop at the present place and change the altitude. Completed when the vehicle has accepted it.',
    risk_level: 'high',
    requires_approval: true,
    input: z.strictObject({ alt_m: altitudeInput(options.goto, kind) }),
    handle: async ({ alt_m }, context) => setAltitude(vehicle, alt_m, { options, context }),
  });
}

interface Ordered {
  readonly options: MavlinkOptions;
  readonly context: CommandContext;
}

async function setAltitude(
  vehicle: Bounded,
  alt_m: number,
  { options, context }: Ordered,
): Promise<JsonObject> {
  const targetOf = ({ position }: Situation): Waypoint | undefined =>
    position && { lat: position.lat, lon: position.lon, alt_m };
  const flight = { targetOf, options: options.goto };
  const { to, situation, target, height } = await admitFlight(vehicle, flight, context);
  const order = { ...gotoOrder(target, height, situation), what: 'set_altitude' };
  const evidence = await carryOut(to, order, context);
  const { amsl_m: alt_amsl_m, above_home_m: height_above_home_m } = height;
  return { alt_amsl_m, height_above_home_m, alt_datum: options.goto.datum, ...evidence };
}

function speedCommand(vehicle: Bounded, options: MavlinkOptions): Command {
  const speed_mps = z
    .number()
    .min(speed_min_mps)
    .max(options.speed_max_mps)
    .describe('metres per second: over ground, for planes through the air')
    .meta({ title: 'Speed', 'x-kit-unit': 'm/s' });
  return defineCommand({
    name: 'set_speed',
    description:
      'Change the speed of the flight to a point or of the mission. Completed when the autopilot has accepted it: autopilots do not report the speed that is set. `effect` of the result: whether the vehicle changed to it.',
    risk_level: 'high',
    requires_approval: true,
    input: z.strictObject({ speed_mps }),
    handle: async (input, context) => {
      const { to, situation } = await admit(vehicle, context, obstacleToSpeed);
      const { speed_mps: wanted_mps } = input;
      const before_mps = speedOf(to.contact, situation);
      const evidence = await carryOut(to, speedOrder(wanted_mps, situation), context);
      const speeds = { speed_mps: wanted_mps, before_mps };
      const effect = await observeSpeed(to, speeds, { situation, context });
      return { speed_mps: wanted_mps, effect, ...evidence };
    },
  });
}
