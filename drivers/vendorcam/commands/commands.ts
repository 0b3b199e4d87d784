/** Builds the commands of a channel or a recorder that the device has, its user may use and the options allow. */
import { z } from 'zod';
import {
  type Command,
  command_timeout_default_ms,
  defineCommand,
  noInput,
} from '../../../src/driver/command.ts';
import { withChoices } from '../../../src/driver/choices.ts';
import type { ChannelAbilities } from '../channels/abilities.ts';
import type { Contact } from '../host/contact.ts';
import type { Device } from '../host/device.ts';
import type { Limits } from '../limits.ts';
import { setMotionDetection, type savedZone } from './motion-switch.ts';
import type { Motors } from './motors.ts';
import type { CommandName } from '../options.ts';
import { goToPreset, type Preset } from './presets.ts';
import { ptzMove, zoom } from './ptz.ts';
import { reboot } from './reboot.ts';
import { switchCommand, type Switches } from './switches.ts';
import type { StateFile } from '../../../src/device/state-file.ts';

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
