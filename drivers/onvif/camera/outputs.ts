/** What a camera switches: relay outputs, and auxiliary functions such as a wiper, a lamp or a heater, as far as it announces them. */
import { z } from 'zod';
import { withChoices } from '../../../src/toolkit/driver/choices.ts';
import { type Command, defineCommand } from '../../../src/toolkit/driver/command.ts';
import { CommandRefused } from '../../../src/platform/errors.ts';
import { describe, type Operation, operation, type Soap } from '../soap/soap.ts';
import { all, attribute, escapeXml, everywhere, find } from '../soap/xml.ts';
import { auxiliaryOf } from './ptz-abilities.ts';
import { profileToken } from './ptz-stop.ts';
import { texts } from '../texts.ts';

/** Of the device as a whole. */
export interface Outputs {
  /** Tokens of its relay outputs. */
  readonly relays: readonly string[];
  /** What SendAuxiliaryCommand of the device service takes. */
  readonly auxiliary: readonly string[];
}

const relays_max = 64;
const token_chars_max = 64;

/** @param url Of Device IO; undefined: the device service answers the same. */
export async function readOutputs(soap: Soap, url: string | undefined): Promise<Outputs> {
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
export function relayCommand(soap: Soap, url: string | undefined, relays: readonly string[]): Command {
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
export interface Auxiliary {
  readonly soap: Soap;
  readonly device: readonly string[];
  readonly motor: { readonly url: string; readonly profile: string; readonly commands: readonly string[] };
}

export function auxiliaryCommand({ soap, device, motor }: Auxiliary): Command {
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
