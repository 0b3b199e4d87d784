/** Sends a camera to one of its preset positions, after checking that it exists. */
import { z } from 'zod';
import { CommandRefused, DeviceUnreachable } from '../../../src/platform/errors.ts';
import type { Device } from '../host/device.ts';
import { refusalOf } from '../host/rsp-codes.ts';
import { ptz } from './motors.ts';
import { type Command, faultIn, type Outcome, valueOf } from '../host/replies.ts';
import { texts } from '../texts.ts';

const presetReply = z.looseObject({
  PtzPreset: z.array(
    z.looseObject({ id: z.int(), name: z.string().catch(''), enable: z.union([z.number(), z.boolean()]) }),
  ),
});

const shown_max = 20;

export interface Preset {
  readonly id: number;
  readonly name: string;
}

export function presetsQuestion(channel: number): Command {
  return { cmd: 'GetPtzPreset', action: 1, param: { channel } };
}

/** The presets that are set; undefined for any other answer. */
export function presetsIn(outcome: Outcome | undefined): readonly Preset[] | undefined {
  return valueOf(outcome, presetReply)?.PtzPreset.filter(({ enable }) => Number(enable) === 1);
}

/** Resolves with the preset's name once the camera has accepted the command; no firmware reports the arrival. */
export async function goToPreset(
  device: Pick<Device, 'askOne' | 'order'>,
  channel: number,
  id: number,
  signal: AbortSignal,
): Promise<string> {
  const outcome = await device.askOne(presetsQuestion(channel));
  const fault = faultIn(outcome);
  if (fault) throw refusalOf(fault);
  const presets = presetsIn(outcome);
  if (!presets) throw new DeviceUnreachable(texts.presets_unknown);
  const preset = presets.find((each) => each.id === id);
  if (!preset) {
    const list = presets.slice(0, shown_max).map((each) => `${each.id} (${each.name})`);
    const has = list.length === 0 ? 'it has no presets' : `it has ${list.join(', ')}`;
    throw new CommandRefused(texts.no_preset(id, has));
  }
  const refused = faultIn(await device.order(ptz(channel, { op: 'ToPos', id }), { signal }));
  if (refused) throw refusalOf(refused);
  return preset.name;
}
