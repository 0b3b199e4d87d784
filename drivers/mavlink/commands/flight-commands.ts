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
import {
  ardusub_depth_mode,
  ardusub_surface_mode,
  modeNumbers,
  arduplane_takeoff_mode,
} from '../vehicles/modes.ts';
import type { Situation } from '../vehicles/situation.ts';
import { admit, admitFlight, type Bounded, notSent } from './admission.ts';
import { altitudeInput, type Height, shownHeight } from './altitude.ts';
import { awaitArrival, journeyUp } from './arrival.ts';
import { changeMode, hold } from './change-mode.ts';
import { carryOut, clock_wait_ms, report_reserve_ms, interruptionOf } from './exchange.ts';
import {
  admitTakeoff,
  isArduPlane,
  obstacleToHold,
  obstacleToMode,
  obstacleToSpeed,
  obstacleToTakeOff,
  type Waypoint,
  admitHeight,
  outOfFence,
  tooFar,
} from './gate.ts';
import { gotoOrder, modeOrder, speedOrder, takeoffOrder, isAirspeed, isAirborne } from './orders.ts';
import { texts } from './texts.ts';
import type { Order } from './ways.ts';
import { CommandRefused } from '../../../src/platform/errors.ts';
import { silenceSince } from '../../../src/platform/stalls.ts';
import { type Addressee, isHeard } from '../vehicles/addressee.ts';
import { readParameters } from './parameters.ts';
import { offset } from '../vehicles/geo.ts';

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
  return { ...shownHeight(height), ...evidence };
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
  return { ...shownHeight(height, options.goto.datum), ...evidence };
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

// Whether the speed that was set shows: no autopilot reports it, but a vehicle on its way changes to it.

/** A vehicle that hovers, turns or is held back by the wind shows nothing, so that the wait is short. */
const observe_max_ms = 6_000;
/** The speed counts when it is kept this long: a vehicle that brakes only passes through it. */
const steady_ms = 2_000;
const speed_fresh_ms = 1_500;
const tolerance_min_mps = 0.4;
const tolerance_share = 0.1;
const what = 'set_speed';

/** `observed`: the vehicle changed to the speed and kept it. `not observable`: only its answer is known. */
type SpeedEffect = 'not observable' | 'observed';

/**
 * Resolves once the vehicle has kept the speed for a while, or when the wait is over. It had another speed before. VFR_HUD has no clock:
 * the speed counts once a message with the clock of the same start follows. Throws `CommandRefused` when the vehicle may have
 * forgotten the speed: it restarted, it is lost, or it sends no clock any more that would show a restart.
 */
async function observeSpeed(
  to: Addressee,
  { speed_mps, before_mps }: { readonly speed_mps: number; readonly before_mps: number | undefined },
  { situation, context }: { readonly situation: Situation; readonly context: CommandContext },
): Promise<SpeedEffect> {
  const tolerance_mps = Math.max(tolerance_min_mps, speed_mps * tolerance_share);
  const fits = (mps: number | undefined): boolean =>
    mps !== undefined && Math.abs(mps - speed_mps) <= tolerance_mps;
  // A speed that it had already shows nothing.
  if (before_mps === undefined || fits(before_mps)) return 'not observable';
  const watch = new Watch(to, context);
  let since_ms: number | undefined;
  let kept: { readonly clock: Contact['clock']; readonly at: number } | undefined;
  const isKept = (): boolean => {
    const now_ms = performance.now();
    if (!fits(speedOf(to.contact, situation))) {
      since_ms = undefined;
      kept = undefined;
      return false;
    }
    since_ms ??= now_ms;
    if (now_ms - since_ms < steady_ms) return false;
    const { clock } = to.contact;
    if (kept?.clock !== clock) kept = { clock, at: clock.messages };
    return !watch.hasClock || clock.wasHeardSince(kept.at);
  };
  if (await watch.until(isKept, observe_max_ms)) return 'observed';
  await watch.requireSameStart();
  return 'not observable';
}

/** The start of the autopilot that has accepted the speed: another one has forgotten it. */
class Watch {
  /** Whether its clock would show a restart. */
  readonly hasClock: boolean;
  readonly #to: Addressee;
  readonly #context: CommandContext;
  readonly #interruption: () => string | undefined;

  constructor(to: Addressee, context: CommandContext) {
    this.#to = to;
    this.#context = context;
    this.#interruption = interruptionOf(to, what);
    this.hasClock = to.contact.clock.isRunning();
  }

  /** Whether `look` found something in time. Throws `CommandRefused` when the vehicle restarted or cannot be told from another one. */
  async until(look: () => boolean, ms: number): Promise<boolean> {
    const left_ms = this.#context.remaining_ms() - report_reserve_ms;
    const seen = await this.#to.changes.until(
      () => (this.#interruption() === undefined ? look() || undefined : false),
      Math.max(0, Math.min(ms, left_ms)),
      this.#context.signal,
    );
    const interruption = this.#interruption();
    if (interruption !== undefined) throw unknown(interruption);
    return seen === true;
  }

  /** Throws `CommandRefused` when the vehicle is silent, or sends no clock any more: it may have restarted. */
  async requireSameStart(): Promise<void> {
    const { name } = this.#to;
    const hasClock = (): boolean => !this.hasClock || this.#to.contact.clock.isRunning(clock_wait_ms);
    const isSame = await this.until(() => isHeard(this.#to.contact) && hasClock(), clock_wait_ms);
    // A stopped task waits for nothing.
    if (isSame || this.#context.signal.aborted) return;
    const { contact } = this.#to;
    const silence_s = (silenceSince(contact.last_ms) / 1_000).toFixed(1);
    throw unknown(isHeard(contact) ? texts.clock_lost(name, what) : texts.link_lost(name, what, silence_s));
  }
}

function unknown(reason: string): CommandRefused {
  return new CommandRefused(texts.unknown_outcome(reason));
}

/** Returns the speed that the command sets: through the air for planes, over ground for others. */
function speedOf({ latest }: Contact, situation: Situation): number | undefined {
  const hud = latest.fresh('VFR_HUD', speed_fresh_ms, performance.now());
  const speed = isAirspeed(situation) ? hud?.airspeed : hud?.groundspeed;
  return Number.isFinite(speed) ? speed : undefined;
}

// The takeoff of an ArduPlane: its TAKEOFF mode, which climbs to TKOFF_ALT above the ground, TKOFF_DIST ahead, and circles there. The
// command has no height, and the driver changes no parameter, so the requested height must be the configured one.

/** The run on the ground, until the autopilot reports that it flies. */
const effect_wait_ms = 20_000;
const height_tolerance_m = 3;
const asked_tolerance_m = 1;
const heading_unknown = 65_535;

async function takeOffAsPlane(
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
  return { ...shownHeight(height), ...evidence };
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
