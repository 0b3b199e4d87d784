/** The commands of one video source: its motor, and what the camera switches. */
import { isDeepStrictEqual } from 'node:util';
import type { Command } from '../../../src/toolkit/driver/command.ts';
import type { Source } from './device.ts';
import { MotorTurns, type PtzParts } from './movement.ts';
import { auxiliaryCommand, readOutputs, relayCommand } from './outputs.ts';
import { readPresets } from './presets.ts';
import { ptzOffer } from './ptz.ts';
import { readPtzAbilities } from './ptz-abilities.ts';
import type { ServiceName, Soap } from '../soap/soap.ts';

export interface CommandParts {
  readonly soap: Soap;
  readonly services: ReadonlyMap<ServiceName, string>;
  readonly source: Pick<Source, 'ptz'>;
  /** Relays and functions of the device as a whole are at this source. */
  readonly isDevice: boolean;
  readonly motor: Pick<PtzParts, 'owed' | 'move_ms' | 'signal' | 'stopping'>;
  /** By node: lenses on one head share its motor (onvif/specs#128). */
  readonly turns: Map<string, MotorTurns>;
  /** Replaces the commands. */
  readonly offer: (commands: readonly Command[]) => void;
}

interface Offered {
  readonly commands: readonly Command[];
  /** Offers them again when the presets of the camera have changed; never rejects. */
  readonly refresh: () => Promise<void>;
}

export async function commandsOf(parts: CommandParts): Promise<Offered> {
  const { soap, services, source, isDevice } = parts;
  const url = services.get('ptz');
  const io_url = services.get('deviceio');
  const outputs = isDevice ? await readOutputs(soap, io_url) : { relays: [], auxiliary: [] };
  const relays = outputs.relays.length > 0 ? [relayCommand(soap, io_url, outputs.relays)] : [];
  const switches = (commands: readonly string[], profile = ''): readonly Command[] => {
    const motor = { url: url ?? '', profile, commands };
    const hasAny = commands.length + outputs.auxiliary.length > 0;
    return [...relays, ...(hasAny ? [auxiliaryCommand({ soap, device: outputs.auxiliary, motor })] : [])];
  };
  if (!source.ptz || url === undefined) {
    return { commands: switches([]), refresh: async () => Promise.resolve() };
  }
  const { profile, node } = source.ptz;
  const place = { soap, url, profile };
  let abilities = await readPtzAbilities(place, node);
  const offered = (): readonly Command[] => [
    ...commandsNow(abilities),
    ...switches(abilities.auxiliary, profile),
  ];
  const key = node === '' ? `profile ${profile}` : node;
  const turns = parts.turns.get(key) ?? new MotorTurns();
  parts.turns.set(key, turns);
  const onWithdrawn = (): void => parts.offer(offered());
  const commandsNow = ptzOffer({ ...place, ...parts.motor, turns, onWithdrawn });
  return {
    commands: offered(),
    async refresh() {
      const read = await readPresets(place, abilities.hasTours);
      const isStale = 'fault' in read || parts.motor.signal.aborted;
      if (isStale || isDeepStrictEqual(read.presets, abilities.presets)) return;
      abilities = { ...abilities, presets: read.presets };
      parts.offer(offered());
    },
  };
}
