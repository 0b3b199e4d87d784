/** Which commands of an asset the cloud sees, and which of them a task may call. */
import type { CommandDefinition } from '../../contract/assets.ts';
import { commandId } from '../../contract/identity.ts';
import { cut, sentence_chars_max } from '../../contract/limits.ts';
import { cleanText } from '../../platform/foreign-text.ts';
import type { Command } from '../../toolkit/driver/command.ts';
import type { DriverLog } from '../../toolkit/driver/driver.ts';
import { texts } from './texts.ts';

/** The asset that the local policy decides on. */
export interface CommandTarget {
  readonly asset_id: string;
  readonly asset_key: string;
  readonly name: string;
  readonly online: boolean;
}

/** Local policy: true, or the refusal for the operator. */
export type Allow = (asset: CommandTarget, command: Command) => true | string;

export type FoundCommand =
  | { readonly asset: CommandTarget; readonly command: Command }
  | {
      readonly refusal: string;
      /** The asset is known, and its driver may reach it soon: the connector was started a moment ago. */
      readonly isAwaited?: boolean;
    };

export const commands_max = 64;

/** The commands as the hub keeps them: each name once, and not more than `commands_max`. */
export function usableCommands(commands: readonly Command[], log: DriverLog): readonly Command[] {
  const byName = new Map<string, Command>();
  for (const command of commands) {
    if (byName.has(command.name)) {
      log.error({ command: command.name }, texts.command_twice);
    } else if (byName.size === commands_max) {
      log.error({ commands_max, command: command.name }, texts.commands_too_many);
    } else {
      byName.set(command.name, command);
    }
  }
  return [...byName.values()];
}

/** What is published: the allowed commands, in the order of the driver. */
export function definitionsOf(
  kit_id: string,
  asset_key: string,
  commands: readonly Command[],
): CommandDefinition[] {
  return commands.map(({ name, description, risk_level, requires_approval, input_schema, timeout_ms }) => ({
    id: commandId(kit_id, asset_key, name),
    name,
    description: cut(cleanText(description), sentence_chars_max),
    risk_level,
    requires_approval,
    input_schema,
    timeout_ms,
  }));
}

/** The command of this name, or a sentence for the operator. */
export function findAmong(
  commands: readonly Command[],
  asset: CommandTarget,
  name: string,
  allow: Allow,
): FoundCommand {
  const command = commands.find((each) => each.name === name);
  if (!command) {
    const known = commands.filter((each) => allow(asset, each) === true).map((each) => each.name);
    const choice = known.length > 0 ? `it has ${known.join(', ')}` : 'it has no commands';
    return { refusal: `${asset.name} has no command "${name}"; ${choice}` };
  }
  const allowed = allow(asset, command);
  return allowed === true ? { asset, command } : { refusal: allowed };
}
