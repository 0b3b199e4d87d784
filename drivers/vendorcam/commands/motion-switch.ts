/**
 * Switches motion detection of a channel on and off and verifies the effect. Old firmware has a switch; newer
 * firmware ignores it or has none, and there the detection zone is emptied, and later restored exactly from the disk.
 */
import { z } from 'zod';
import { CommandRefused, DeviceUnreachable, messageOf } from '../../../src/platform/errors.ts';
import type { Device } from '../host/device.ts';
import { refusalOf } from '../host/rsp-codes.ts';
import { type Command, faultIn, valueOf } from '../host/replies.ts';
import type { StateFile } from '../../../src/toolkit/device/state-file.ts';
import { texts } from '../texts.ts';

const scope = z.looseObject({ cols: z.int(), rows: z.int(), table: z.string().regex(/^[01]+$/u) });
const alarm = z.looseObject({ enable: z.number().optional(), scope: scope.optional() });
const alarmReply = z.looseObject({ Alarm: alarm });
const mdAlarm = z.looseObject({ scope });
const mdAlarmReply = z.looseObject({ MdAlarm: mdAlarm });

/** The zone before the driver emptied it. */
export const savedZone = z.strictObject({ cols: z.int(), rows: z.int(), table: z.string() });

export interface MotionParts {
  readonly device: Pick<Device, 'askOne' | 'order'>;
  readonly channel: number;
  /** `scheduleVersion` of the device's abilities: from 1 on the settings have separate commands. */
  readonly scheduleVersion: number;
  readonly zone: StateFile<typeof savedZone>;
  readonly signal: AbortSignal;
}

export type Method = 'switch' | 'zone';

/** Resolves with the method once the camera reports the change. */
export async function setMotionDetection(parts: MotionParts, enabled: boolean): Promise<Method> {
  const bySwitch = parts.scheduleVersion === 0 && (await trySwitch(parts, enabled));
  if (bySwitch && !enabled) return 'switch';
  // With the switch on, an empty zone would still detect nothing.
  const byZone = await setZone(parts, { enabled, isSwitched: bySwitch });
  return bySwitch && !byZone ? 'switch' : 'zone';
}

/** False when the firmware has no such switch or ignores it. */
async function trySwitch(parts: MotionParts, enabled: boolean): Promise<boolean> {
  const before = await readAlarm(parts);
  const wanted = enabled ? 1 : 0;
  if (before?.enable !== 0 && before?.enable !== 1) return false;
  if (before.enable === wanted) return true;
  await set(parts, { cmd: 'SetAlarm', action: 0, param: { Alarm: { ...before, enable: wanted } } });
  return (await readAlarm(parts))?.enable === wanted;
}

/** True when it had to change the zone. */
async function setZone(
  parts: MotionParts,
  { enabled, isSwitched }: { readonly enabled: boolean; readonly isSwitched: boolean },
): Promise<boolean> {
  const zone = await findZone(parts);
  if (!zone) {
    if (isSwitched) return false;
    throw new CommandRefused(texts.no_switch);
  }
  const { cols, rows, table } = zone.scope;
  const isEmpty = !table.includes('1');
  if (!enabled) {
    if (isEmpty) return true;
    await keepZone(parts, { cols, rows, table });
    await writeZone(parts, zone, '0'.repeat(table.length));
    return true;
  }
  if (!isEmpty) {
    // A person drew a zone after the driver emptied it: it is kept.
    await parts.zone.remove();
    return false;
  }
  const saved = await parts.zone.read();
  if (!saved) {
    throw new CommandRefused(texts.zone_empty);
  }
  if (saved.cols !== cols || saved.rows !== rows || saved.table.length !== table.length) {
    throw new CommandRefused(texts.grid_changed);
  }
  await writeZone(parts, zone, saved.table);
  await parts.zone.remove();
  return true;
}

interface Zone {
  readonly scope: z.output<typeof scope>;
  readonly setter: (table: string) => Command;
}

/** Where this firmware has the zone; undefined when it has none. */
async function findZone(parts: MotionParts): Promise<Zone | undefined> {
  const { device, channel } = parts;
  const outcome = await device.askOne({ cmd: 'GetMdAlarm', action: 0, param: { channel } });
  const md = valueOf(outcome, mdAlarmReply)?.MdAlarm;
  if (md) {
    return {
      scope: md.scope,
      setter: (table) => {
        const MdAlarm = { ...md, channel, scope: { ...md.scope, table } };
        return { cmd: 'SetMdAlarm', action: 0, param: { MdAlarm } };
      },
    };
  }
  const fault = faultIn(outcome);
  if (fault && fault.kind !== 'unsupported' && fault.kind !== 'bad_request') throw refusalOf(fault);
  if (parts.scheduleVersion > 0) return undefined;
  const old = await readAlarm(parts);
  const found = old?.scope;
  if (!old || !found) return undefined;
  return {
    scope: found,
    setter: (table) => ({
      cmd: 'SetAlarm',
      action: 0,
      param: { Alarm: { ...old, channel, type: 'md', scope: { ...found, table } } },
    }),
  };
}

async function writeZone(parts: MotionParts, zone: Zone, table: string): Promise<void> {
  await set(parts, zone.setter(table));
  const now = await findZone(parts);
  if (now?.scope.table === table) return;
  throw new CommandRefused(texts.switch_without_effect);
}

async function readAlarm({ device, channel }: MotionParts): Promise<z.output<typeof alarm> | undefined> {
  const outcome = await device.askOne({
    cmd: 'GetAlarm',
    action: 0,
    param: { Alarm: { channel, type: 'md' } },
  });
  const fault = faultIn(outcome);
  if (fault && fault.kind !== 'unsupported' && fault.kind !== 'bad_request') throw refusalOf(fault);
  return valueOf(outcome, alarmReply)?.Alarm;
}

async function set({ device, signal }: MotionParts, command: Command): Promise<void> {
  const outcome = await device.order(command, { signal }).catch((error: unknown) => {
    if (!(error instanceof DeviceUnreachable)) throw error;
    throw new CommandRefused(texts.motion_uncertain(error.message));
  });
  const fault = faultIn(outcome);
  if (fault) throw refusalOf(fault);
}

/** On disk before the camera is changed, or else the zone could be lost. */
async function keepZone({ zone }: MotionParts, saved: z.output<typeof savedZone>): Promise<void> {
  try {
    await zone.write(saved);
  } catch (error) {
    throw new CommandRefused(texts.zone_unsaved(messageOf(error)));
  }
}
