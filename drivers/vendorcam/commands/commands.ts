/** Builds the commands of a channel or a recorder that the device has, its user may use and the options allow. */
import { z } from 'zod';
import {
  type Command,
  command_timeout_default_ms,
  defineCommand,
  noInput,
} from '../../../src/toolkit/driver/command.ts';
import { withChoices } from '../../../src/toolkit/driver/choices.ts';
import type { ChannelAbilities } from '../host/abilities.ts';
import type { Contact } from '../host/contact.ts';
import type { Device } from '../host/device.ts';
import type { Limits } from '../limits.ts';
import { type savedZone, setMotionDetection } from './motion-switch.ts';
import type { Motors, Move } from './motors.ts';
import type { CommandName } from '../options.ts';
import { goToPreset, type Preset } from './presets.ts';
import { switchCommand, type Switches } from './switches.ts';
import type { StateFile } from '../../../src/toolkit/device/state-file.ts';
import { CommandRefused, DeviceUnreachable } from '../../../src/platform/errors.ts';
import { within } from '../../../src/platform/time.ts';
import { refusalOf } from '../host/rsp-codes.ts';
import { faultIn } from '../host/replies.ts';
import { texts } from '../texts.ts';

export interface Controls {
  readonly device: Device;
  readonly motors: Motors;
  readonly switches: Switches;
  readonly contact: Contact;
  readonly limits: Limits;
  readonly allowed: readonly CommandName[];
  readonly ptz_move_max_ms: number;
  /** Aborts when the driver stops. */
  readonly signal: AbortSignal;
}

export interface ChannelControls extends Controls {
  readonly channel: number;
  readonly abilities: ChannelAbilities;
  /** As the camera listed them last. */
  readonly presets: readonly Preset[];
  readonly scheduleVersion: number;
  readonly zone: StateFile<typeof savedZone>;
}

/** Firmware counts presets from 0 or from 1, so the list of the camera is read. */
const preset_id_max = 255;
const settings_timeout_ms = 60_000;

export function channelCommands(controls: ChannelControls): readonly Command[] {
  const { abilities } = controls;
  return [
    ...(abilities.canMove ? [ptzMove(controls)] : []),
    ...(abilities.canZoom ? [zoom(controls)] : []),
    ...(abilities.hasPresets ? [ptzPreset(controls)] : []),
    ...(abilities.hasSiren ? [switchCommand('siren', controls)] : []),
    ...(abilities.hasLight ? [switchCommand('light', controls)] : []),
    ...(abilities.canSetMotion ? [setMotion(controls)] : []),
  ].filter(isAllowed(controls));
}

/** Of the host as a whole: the camera itself, or the recorder with all of its channels. */
export function hostCommands(controls: Controls, canReboot: boolean): readonly Command[] {
  return (canReboot ? [rebootCommand(controls)] : []).filter(isAllowed(controls));
}

function isAllowed({ allowed }: Controls): (command: Command) => boolean {
  return (command) => allowed.some((name) => name === command.name);
}

function ptzPreset({ device, channel, presets, signal }: ChannelControls): Command {
  const command = defineCommand({
    name: 'ptz_preset',
    description:
      'Sends the camera to one of its presets; completed once the camera has accepted it, since no camera reports its arrival.',
    risk_level: 'low',
    timeout_ms: 2 * command_timeout_default_ms,
    input: z.strictObject({ preset_id: z.int().min(0).max(preset_id_max) }),
    handle: async ({ preset_id }, context) => {
      const name = await goToPreset(device, channel, preset_id, AbortSignal.any([context.signal, signal]));
      return { preset_id, name };
    },
  });
  const choices = presets.map(({ id, name }) => ({ value: id, title: name }));
  return withChoices(command, 'preset_id', choices);
}

function setMotion({ device, channel, scheduleVersion, zone, signal }: ChannelControls): Command {
  return defineCommand({
    name: 'set_motion_detection',
    description: 'Switches motion detection on or off; completed once the camera reports it.',
    risk_level: 'medium',
    repeatable: true,
    timeout_ms: settings_timeout_ms,
    input: z.strictObject({ enabled: z.boolean() }),
    handle: async ({ enabled }, context) => {
      const stopped = AbortSignal.any([context.signal, signal]);
      const parts = { device, channel, scheduleVersion, zone, signal: stopped };
      return { enabled, method: await setMotionDetection(parts, enabled) };
    },
  });
}

function rebootCommand({ device, contact, limits, signal }: Controls): Command {
  return defineCommand({
    name: 'reboot',
    description: 'Restarts the device; completed once it is back.',
    risk_level: 'high',
    timeout_ms: limits.reboot_deadline_ms,
    input: noInput,
    handle: async (_none, context) => {
      const stopped = AbortSignal.any([context.signal, signal]);
      const { progress } = context;
      return { back_after_s: await reboot({ device, contact, limits, signal: stopped, progress }) };
    },
  });
}

// Commands that move a camera or its lens. The interface counts the speed from 1 to 64; `stop` is a direction.

export interface PtzControls {
  readonly motors: Motors;
  readonly channel: number;
  readonly abilities: ChannelAbilities;
  readonly ptz_move_max_ms: number;
  /** Aborts when the driver stops. */
  readonly signal: AbortSignal;
}

const speed_default = 32;
const speed = z
  .int()
  .min(1)
  .max(64)
  .default(speed_default)
  .describe('1 slow to 64 fast; without effect on motors with one speed');

interface Motion<D extends string> {
  readonly name: string;
  readonly what: string;
  readonly ops: Readonly<Record<D, Move['op']>>;
  readonly direction: z.ZodType<D | 'stop'>;
}

export function ptzMove(controls: PtzControls): Command {
  return moving(controls, {
    name: 'ptz_move',
    what: 'Moves the camera',
    ops: { up: 'Up', down: 'Down', left: 'Left', right: 'Right' },
    direction: z.enum(['up', 'down', 'left', 'right', 'stop']),
  });
}

export function zoom(controls: PtzControls): Command {
  return moving(controls, {
    name: 'zoom',
    what: 'Zooms in or out',
    ops: { in: 'ZoomInc', out: 'ZoomDec' },
    direction: z.enum(['in', 'out', 'stop']),
  });
}

function moving<D extends string>(
  { motors, channel, abilities, ptz_move_max_ms, signal }: PtzControls,
  { name, what, ops, direction: directions }: Motion<D>,
): Command {
  return defineCommand({
    name,
    description: `${what} until "stop" or another command, for at most ${ptz_move_max_ms / 1_000} s; completed once it was stopped.`,
    risk_level: 'low',
    // A move or a stop replaces the earlier move.
    safety: true,
    timeout_ms: ptz_move_max_ms + command_timeout_default_ms,
    input: z.strictObject({ direction: directions, speed }).meta({ 'x-kit-move-ms': ptz_move_max_ms }),
    handle: async ({ direction, speed: asked }, context) => {
      if (direction === 'stop') {
        await motors.end(channel);
        return { direction };
      }
      const told = abilities.takesSpeed ? asked : undefined;
      const move = { channel, op: ops[direction], speed: told, max_ms: ptz_move_max_ms };
      const moved_ms = await motors.move(move, AbortSignal.any([context.signal, signal]));
      return { direction, speed: told ?? null, moved_ms };
    },
  });
}

// Restarts a device and waits until it was lost and answers again.

export interface RebootParts {
  readonly device: Pick<Device, 'order'>;
  readonly contact: Contact;
  readonly limits: Limits;
  readonly signal: AbortSignal;
  readonly progress: (message: string) => void;
}

/** Resolves with the seconds until it was back. */
export async function reboot(parts: RebootParts): Promise<number> {
  const { device, contact, limits, signal, progress } = parts;
  const before = contact.state;
  const begin_ms = performance.now();
  contact.expectBack(limits.reboot_deadline_ms);
  try {
    const fault = faultIn(await device.order({ cmd: 'Reboot', action: 0, param: {} }, { signal }));
    if (fault) throw refusalOf(fault);
  } catch (error) {
    // A device that goes down at once cannot answer; the wait below decides.
    if (!(error instanceof DeviceUnreachable)) {
      contact.expectBack(0);
      throw error;
    }
  }
  progress(texts.restart_sent);
  const gone = contact.until(({ isUp }) => !isUp, signal);
  if ((await within(limits.reboot_leaves_ms, gone, signal)) === true) {
    progress(texts.restarting);
    if (!(await contact.until(({ isUp }) => isUp, signal))) {
      throw unseen(signal, texts.not_back);
    }
  } else if (signal.aborted || contact.state.starts === before.starts) {
    // Its session was not lost either, so it did not restart.
    contact.expectBack(0);
    throw unseen(signal, texts.not_restarted);
  }
  contact.expectBack(0);
  return Math.round((performance.now() - begin_ms) / 1_000);
}

function unseen(signal: AbortSignal, sentence: string): CommandRefused {
  return new CommandRefused(signal.aborted ? texts.stopped_before_answer : sentence);
}
