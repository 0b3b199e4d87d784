/** The commands of one video source: its motor, and what the camera switches. */
import { isDeepStrictEqual } from 'node:util';
import { type Command, defineCommand } from '../../../src/toolkit/driver/command.ts';
import type { Source } from './device.ts';
import { MotorTurns, type PtzParts } from './movement.ts';
import { readPresets } from './presets.ts';
import { ptzOffer } from './ptz.ts';
import { readPtzAbilities, auxiliaryOf } from './ptz-abilities.ts';
import { type ServiceName, type Soap, describe, type Operation, operation } from '../soap/soap.ts';
import { z } from 'zod';
import { withChoices } from '../../../src/toolkit/driver/choices.ts';
import { CommandRefused } from '../../../src/platform/errors.ts';
import { all, attribute, escapeXml, everywhere, find } from '../soap/xml.ts';
import { profileToken } from './ptz-stop.ts';
import { texts } from '../texts.ts';

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

// What a camera switches: relay outputs, and auxiliary functions such as a wiper, a lamp or a heater, as far as it announces them.

/** Of the device as a whole. */
interface Outputs {
  /** Tokens of its relay outputs. */
  readonly relays: readonly string[];
  /** What SendAuxiliaryCommand of the device service takes. */
  readonly auxiliary: readonly string[];
}

const relays_max = 64;
const token_chars_max = 64;

/** @param url Of Device IO; undefined: the device service answers the same. */
async function readOutputs(soap: Soap, url: string | undefined): Promise<Outputs> {
  const [listed, able] = await Promise.all([
    soap.call({ ...operation('device', 'GetRelayOutputs'), ...(url === undefined ? {} : { url }) }),
    soap.call(operation('device', 'GetServiceCapabilities')),
  ]);
  const outputs =
    listed.kind === 'reply' ? all(find(listed.body, 'getRelayOutputsResponse'), 'relayOutputs') : [];
  const relays = outputs
    .map((output) => attribute(output, 'token') ?? '')
    .filter((token) => token !== '' && token.length <= token_chars_max);
  const misc = able.kind === 'reply' ? everywhere(able.body, 'misc')[0] : undefined;
  const auxiliary = auxiliaryOf((attribute(misc, 'auxiliaryCommands') ?? '').split(/\s+/u));
  return { relays: [...new Set(relays)].slice(0, relays_max), auxiliary };
}

/**
 * Switches a relay (Device IO Service Specification, section 5.8.4). There is no request for its state: the camera has accepted it, and
 * nothing is sent twice, since a relay may open a gate for a moment.
 */
function relayCommand(soap: Soap, url: string | undefined, relays: readonly string[]): Command {
  const output = z.enum(relays).describe('token of the relay output');
  const [first] = relays;
  return defineCommand({
    name: 'relay',
    description:
      'Switches a relay output; completed once the camera has accepted it, since none reports the state on request',
    risk_level: 'medium',
    input: z.strictObject({
      output: relays.length === 1 && first !== undefined ? output.default(first) : output,
      on: z.boolean(),
    }),
    handle: async ({ output: token, on }, { signal }) => {
      const state = on ? 'active' : 'inactive';
      // Device IO takes the elements of the device service, too.
      const inner = `<RelayOutputToken>${escapeXml(token)}</RelayOutputToken><LogicalState>${state}</LogicalState>`;
      const asked = operation('device', 'SetRelayOutputState', inner);
      await send(soap, { ...asked, ...(url === undefined ? {} : { url }) }, signal);
      return { output: token, on, switched: 'accepted' };
    },
  });
}

/** What an auxiliary command is sent to: the motor of a profile, or the device. */
interface Auxiliary {
  readonly soap: Soap;
  readonly device: readonly string[];
  readonly motor: { readonly url: string; readonly profile: string; readonly commands: readonly string[] };
}

function auxiliaryCommand({ soap, device, motor }: Auxiliary): Command {
  const commands = [...new Set([...motor.commands, ...device])];
  const command = defineCommand({
    name: 'auxiliary',
    description:
      'Switches a function of the camera such as a wiper or a lamp; completed once the camera has accepted it, since none reports the effect',
    // Names of makers may mean anything.
    risk_level: 'medium',
    input: z.strictObject({ command: z.enum(commands).describe('as the camera announces it') }),
    handle: async ({ command: text }, { signal }) => {
      const data = escapeXml(text);
      const asked = motor.commands.includes(text)
        ? {
            ...operation(
              'ptz',
              'SendAuxiliaryCommand',
              `${profileToken(motor.profile)}<AuxiliaryData>${data}</AuxiliaryData>`,
            ),
            url: motor.url,
          }
        : operation('device', 'SendAuxiliaryCommand', `<AuxiliaryCommand>${data}</AuxiliaryCommand>`);
      await send(soap, asked, signal);
      return { command: text, switched: 'accepted' };
    },
  });
  return withChoices(
    command,
    'command',
    commands.map((value) => ({ value, title: titleOf(value) })),
  );
}

/** `tt:IRLamp|On` is `IRLamp: On` (ONVIF Core, section 8.6); names of makers are shown as they are. */
function titleOf(command: string): string {
  return command.replace(/^tt:/u, '').replace('|', ': ');
}

async function send(soap: Soap, asked: Operation, signal: AbortSignal): Promise<void> {
  if (signal.aborted) throw new CommandRefused(texts.not_switched('cancelled'));
  const outcome = await soap.call(asked);
  if (outcome.kind === 'fault') throw new CommandRefused(texts.not_switched(describe(outcome)));
  if (outcome.kind === 'failure') throw new CommandRefused(texts.switch_unknown(describe(outcome)));
}
