/** Reads the abilities of a device and its channels, and the user's rights. Pure. See the HTTP API guide, "GetAbility". */
import { z } from 'zod';

export interface ChannelAbilities {
  readonly canMove: boolean;
  readonly canZoom: boolean;
  readonly hasSiren: boolean;
  readonly hasLight: boolean;
  /** Some motors have one speed and refuse a speed parameter. */
  readonly takesSpeed: boolean;
  readonly hasPresets: boolean;
  readonly canSetMotion: boolean;
  readonly hasPictures: boolean;
  readonly hasBattery: boolean;
}

export interface Abilities {
  readonly canReboot: boolean;
  /** From version 1 on, schedules and zones have separate commands. */
  readonly scheduleVersion: number;
  readonly ofChannel: (channel: number) => ChannelAbilities;
}

const ability = z.looseObject({ permit: z.number(), ver: z.number() }).optional().catch(undefined);
type Ability = z.output<typeof ability>;

const channelAbility = z.looseObject({
  ptzType: ability,
  ptzCtrl: ability,
  ptzPreset: ability,
  supportPtzSpeed: ability,
  alarmMd: ability,
  snap: ability,
  alarmAudio: ability,
  supportAudioAlarm: ability,
  floodLight: ability,
  supportFLswitch: ability,
  supportMd: ability,
  battery: ability,
});

export const abilityReply = z.looseObject({
  Ability: z.looseObject({
    abilityChn: z.array(channelAbility.catch({})).catch([]),
    reboot: ability,
    scheduleVersion: ability,
  }),
});

/** Bits of `permit`. */
const may_execute = 1;
const may_write = 2;
/** Values of `ptzType.ver`: pan-tilt-zoom, pan-tilt, simulated, without speed, and two of newer models. 1 is a motorised lens only. */
const moving_types: ReadonlySet<number> = new Set([2, 3, 4, 5, 6, 7]);
/** A motorised lens: alone, with pan and tilt, and without speed. */
const zoom_types: ReadonlySet<number> = new Set([1, 2, 5]);
const speed_types: ReadonlySet<number> = new Set([2, 3]);

export function abilitiesOf({ Ability: all }: z.output<typeof abilityReply>): Abilities {
  return {
    canReboot: allows(all.reboot, may_execute),
    scheduleVersion: all.scheduleVersion?.ver ?? 0,
    ofChannel: (channel) => channelAbilitiesOf(all.abilityChn[channel] ?? {}),
  };
}

function channelAbilitiesOf(found: z.output<typeof channelAbility>): ChannelAbilities {
  const { alarmMd, supportMd, snap } = found;
  return {
    ...motorAbilitiesOf(found),
    hasSiren: isThere(found.alarmAudio) || isThere(found.supportAudioAlarm),
    hasLight: isThere(found.floodLight) || isThere(found.supportFLswitch),
    // Old firmware does not report it.
    hasPictures: snap?.ver !== 0,
    hasBattery: isThere(found.battery),
    canSetMotion: allows(alarmMd, may_write) && supportMd?.ver !== 0,
  };
}

function motorAbilitiesOf(found: z.output<typeof channelAbility>) {
  const { ptzCtrl, ptzPreset, supportPtzSpeed } = found;
  // Old firmware reports no type; its motors accept a speed.
  const type = found.ptzType?.ver ?? 2;
  const canMove = allows(ptzCtrl, may_execute) && moving_types.has(type);
  return {
    canMove,
    canZoom: allows(ptzCtrl, may_execute) && zoom_types.has(type),
    takesSpeed: canMove && speed_types.has(type) && supportPtzSpeed?.ver !== 0,
    hasPresets: canMove && isThere(ptzPreset),
  };
}

function isThere(found: Ability): boolean {
  return found !== undefined && found.ver > 0;
}

function allows(found: Ability, bit: number): boolean {
  return found !== undefined && found.ver > 0 && (found.permit & bit) === bit;
}
