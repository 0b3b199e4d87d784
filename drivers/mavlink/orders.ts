/** What each command sends, and what must be seen before it counts as done. */
import type { Height } from './altitude.ts';
import type { Contact } from './contact.ts';
import type { Order } from './exchange.ts';
import type { Waypoint } from './gate.ts';
import { distance_m } from './geo.ts';
import type { Messages } from './messages.ts';
import { flightMode, isHomeward, type ModeName, modeNumbers, type ModeNumbers } from './modes.ts';
import { isArmed, type Situation } from './situation.ts';

const command_return = 20;
const command_set_mode = 176;
const command_reposition = 192;
const command_arm = 400;
const effect_wait_ms = 3_000;
/** The target is echoed once a second. */
const goto_effect_wait_ms = 4_000;
const base_mode_custom = 1;
const base_mode_armed = 128;
const frame_global = 0;
const frame_global_relative_int = 6;
const target_tolerance_m = 1;

export function armOrder(armed: boolean): Order {
  return {
    what: armed ? 'arm' : 'disarm',
    command: command_arm,
    // param2 stays 0: the number that forces it is not in this program.
    send: (contact, confirmation) =>
      sendLong(contact, { command: command_arm, confirmation, param1: armed ? 1 : 0 }),
    may_resend: !armed,
    expected: armed ? 'an armed vehicle' : 'a disarmed vehicle',
    effect_wait_ms,
    isSeen: ({ heard }, since_ms) => {
      const heartbeat = heard.since('HEARTBEAT', since_ms);
      return heartbeat !== undefined && isArmed(heartbeat) === armed;
    },
  };
}

export function returnOrder(): Order {
  return {
    what: 'return_home',
    command: command_return,
    send: (contact, confirmation) => sendLong(contact, { command: command_return, confirmation }),
    may_resend: true,
    expected: 'a mode that returns home',
    effect_wait_ms,
    isSeen: (contact, since_ms) => isHomeward(modeOf(contact, since_ms)),
  };
}

export function modeOrder(
  mode: ModeName,
  { main, sub, custom_mode }: ModeNumbers,
  { autopilot, armed }: Situation,
): Order {
  const base_mode = base_mode_custom | (autopilot === 'px4' && armed ? base_mode_armed : 0);
  return {
    what: `set_mode ${mode}`,
    command: command_set_mode,
    send: (contact, confirmation) =>
      sendLong(contact, {
        command: command_set_mode,
        confirmation,
        param1: base_mode,
        param2: main,
        param3: sub,
      }),
    may_resend: mode === 'RTL' || mode === 'LAND' || mode === 'LOITER',
    expected: `mode ${mode}`,
    effect_wait_ms,
    isSeen: ({ heard }, since_ms) => heard.since('HEARTBEAT', since_ms)?.custom_mode === custom_mode,
    fallback: (contact) => contact.send('SET_MODE', { target_system: contact.sysid, base_mode, custom_mode }),
  };
}

/** PX4 reads the altitude as above sea level, whatever the frame says; ArduPilot knows its own home best. */
export function gotoOrder({ lat, lon }: Waypoint, height: Height, { autopilot, kind }: Situation): Order {
  const [frame, z_m] =
    autopilot === 'px4' ? [frame_global, height.amsl_m] : [frame_global_relative_int, height.above_home_m];
  const guided = modeNumbers(autopilot, kind, 'GUIDED');
  return {
    what: 'goto_waypoint',
    command: command_reposition,
    send: (contact) =>
      contact.send('COMMAND_INT', {
        target_system: contact.sysid,
        target_component: contact.compid,
        frame,
        command: command_reposition,
        current: 0,
        autocontinue: 0,
        // Default speed, change the mode if needed, no loiter radius, keep the heading.
        param1: -1,
        param2: 1,
        param3: 0,
        param4: Number.NaN,
        x: Math.round(lat * 1e7),
        y: Math.round(lon * 1e7),
        z: z_m,
      }),
    may_resend: false,
    expected: 'the target in its own report',
    effect_wait_ms: goto_effect_wait_ms,
    isSeen: ({ heard }, since_ms) => {
      const echo = heard.since('POSITION_TARGET_GLOBAL_INT', since_ms);
      const is_guided = heard.since('HEARTBEAT', since_ms)?.custom_mode === guided?.custom_mode;
      // Rovers put no meaningful altitude into the echo.
      return (
        is_guided &&
        echo !== undefined &&
        isNear(echo, { lat, lon, amsl_m: kind === 'rover' ? undefined : height.amsl_m })
      );
    },
  };
}

interface Target {
  readonly lat: number;
  readonly lon: number;
  readonly amsl_m: number | undefined;
}

function isNear(echo: Messages['POSITION_TARGET_GLOBAL_INT'], { lat, lon, amsl_m }: Target): boolean {
  const off_m = distance_m({ lat: echo.lat_int / 1e7, lon: echo.lon_int / 1e7 }, { lat, lon });
  return (
    off_m <= target_tolerance_m && (amsl_m === undefined || Math.abs(echo.alt - amsl_m) <= target_tolerance_m)
  );
}

/** The mode of a heartbeat that came after `since_ms`. */
export function modeOf(
  { autopilot, kind, heard }: Contact,
  since_ms = Number.NEGATIVE_INFINITY,
): string | null {
  const heartbeat = heard.since('HEARTBEAT', since_ms);
  return heartbeat ? flightMode(autopilot, kind, heartbeat) : null;
}

type Long = Pick<Messages['COMMAND_LONG'], 'command' | 'confirmation'> & Partial<Messages['COMMAND_LONG']>;

function sendLong(contact: Contact, fields: Long): void {
  const target = { target_system: contact.sysid, target_component: contact.compid };
  const params = { param1: 0, param2: 0, param3: 0, param4: 0, param5: 0, param6: 0, param7: 0 };
  contact.send('COMMAND_LONG', { ...params, ...target, ...fields });
}
