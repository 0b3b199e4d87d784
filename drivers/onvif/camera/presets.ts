/** Sends a camera to one of its stored positions. */
import type { CommandContext } from '../../../src/toolkit/driver/command.ts';
import { CommandRefused, notSent } from '../../../src/platform/errors.ts';
import { describe, operation } from '../soap/soap.ts';
import { all, attribute, escapeXml, find, textAt } from '../soap/xml.ts';
import { type PtzParts, refuseAborted, stopForSure } from './movement.ts';
import { type Motor, move_deadline_ms, profileToken, settled } from './ptz-stop.ts';
import { texts } from '../texts.ts';

export interface Preset {
  readonly token: string;
  readonly name: string | null;
}

const preset_within_ms = 20_000;
const presets_max = 512;
/** ONVIF Core, ReferenceToken. */
const token_chars_max = 64;

/** Looks the token up first, each time: some cameras answer OK to a preset that they do not have. */
export async function goTo(parts: PtzParts, token: string, context: CommandContext) {
  const signal = AbortSignal.any([context.signal, parts.signal]);
  refuseAborted(signal);
  const listed = await readPresets(parts);
  if ('fault' in listed) throw new CommandRefused(notSent(texts.presets_unread(listed.fault)));
  const { presets } = listed;
  const preset = presets.find((each) => each.token === token);
  if (!preset) {
    const named = presets.find(({ name }) => name === token);
    const hint = named
      ? `; "${token}" is the name of the preset "${named.token}"`
      : `; it has ${
          presets
            .map((each) => each.token)
            .slice(0, 20)
            .join(', ') || 'none'
        }`;
    throw new CommandRefused(notSent(texts.no_preset(token, hint)));
  }
  refuseAborted(signal);
  const inner = `${profileToken(parts.profile)}<PresetToken>${escapeXml(token)}</PresetToken>`;
  const outcome = await parts.soap.call({ ...operation('ptz', 'GotoPreset', inner), url: parts.url });
  if (outcome.kind === 'fault') throw new CommandRefused(`${describe(outcome)}; no movement began`);
  if (outcome.kind === 'failure') {
    throw new CommandRefused(`${describe(outcome)}; whether it moves is unknown`);
  }
  const left_ms = Math.min(preset_within_ms, Math.max(0, context.remaining_ms() - move_deadline_ms));
  const moving = await settled(parts, left_ms, signal);
  if (signal.aborted) {
    await stopForSure(parts);
    throw new CommandRefused(texts.cancelled_stopped);
  }
  if (moving === true) throw new CommandRefused(texts.preset_late);
  return { preset_token: token, name: preset.name, reached: moving === false ? 'seen' : 'accepted' };
}

/** The presets of the camera, or why they cannot be read. */
export async function readPresets({
  soap,
  url,
  profile,
}: Pick<Motor, 'soap' | 'url' | 'profile'>): Promise<
  { readonly presets: readonly Preset[] } | { readonly fault: string }
> {
  const outcome = await soap.call({ ...operation('ptz', 'GetPresets', profileToken(profile)), url });
  if (outcome.kind !== 'reply') return { fault: describe(outcome) };
  const presets = all(find(outcome.body, 'getPresetsResponse'), 'preset')
    .slice(0, presets_max)
    .map((preset) => ({ token: attribute(preset, 'token') ?? '', name: textAt(preset, 'name') ?? null }))
    .filter(({ token }) => token !== '' && token.length <= token_chars_max);
  // Of a token that is listed twice only the first is meant by it.
  return { presets: [...new Map(presets.toReversed().map((each) => [each.token, each])).values()].reverse() };
}
