/** Sends a camera to one of its stored positions, or along several of them (a preset tour). */
import type { CommandContext } from '../../../src/toolkit/driver/command.ts';
import { CommandRefused, notSent } from '../../../src/platform/errors.ts';
import { describe, type Operation, operation, type SoapOutcome } from '../soap/soap.ts';
import { all, attribute, escapeXml, find, textAt, type XmlNode } from '../soap/xml.ts';
import { begin, type PtzParts, refusalOf, refuseAborted, stopForSure, travel } from './movement.ts';
import { type Motor, profileToken } from './ptz-stop.ts';
import { texts } from '../texts.ts';
import { untilAborted } from '../waiting.ts';

export interface Preset {
  /** What a task names it by. */
  readonly token: string;
  readonly name: string | null;
  /** The camera's token of the tour; undefined for a position. */
  readonly tour: string | undefined;
}

interface Place extends Pick<Motor, 'soap' | 'url' | 'profile'> {
  /** Ends what is read there. */
  readonly signal?: AbortSignal;
}

const presets_max = 512;
/** ONVIF Core, ReferenceToken. */
const token_chars_max = 64;
const tour_prefix = 'tour:';
export const preset_chars_max = tour_prefix.length + token_chars_max;

/** Looks the token up first, each time: some cameras answer OK to a preset that they do not have. */
export async function goTo(parts: PtzParts, token: string, hasTours: boolean, context: CommandContext) {
  const signal = AbortSignal.any([context.signal, parts.signal]);
  refuseAborted(signal);
  const listed = await untilAborted(readPresets({ ...parts, signal }, hasTours), signal);
  refuseAborted(signal);
  if (!listed || 'fault' in listed) {
    throw new CommandRefused(notSent(texts.presets_unread(listed?.fault ?? '')));
  }
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
  const about = { preset_token: token, name: preset.name };
  if (preset.tour !== undefined) return { ...about, started: await startTour(parts, preset.tour, signal) };
  const inner = `${profileToken(parts.profile)}<PresetToken>${escapeXml(token)}</PresetToken>`;
  return { ...about, reached: await travel(parts, operation('ptz', 'GotoPreset', inner), context) };
}

/** The presets of the camera, then its tours, or why the presets cannot be read. */
export async function readPresets(
  place: Place,
  hasTours = false,
): Promise<
  { readonly presets: readonly Preset[] } | { readonly fault: string; readonly isUnsupported: boolean }
> {
  const outcome = await read(place, 'GetPresets');
  const tours = hasTours ? await readTours(place) : [];
  if (outcome.kind !== 'reply' && tours.length === 0) {
    const isUnsupported = outcome.kind === 'fault' && /NotSupported|NotImplemented/u.test(outcome.code);
    return { fault: describe(outcome), isUnsupported };
  }
  const positions = outcome.kind === 'reply' ? all(find(outcome.body, 'getPresetsResponse'), 'preset') : [];
  const presets = [
    ...positions
      .slice(0, presets_max)
      .map(labelOf)
      .filter(({ token }) => token !== '' && token.length <= token_chars_max),
    ...tours.map(({ token, name }) => ({ token: `${tour_prefix}${token}`, name, tour: token })),
  ];
  // Of a token that is listed twice only the first is meant by it.
  return { presets: [...new Map(presets.toReversed().map((each) => [each.token, each])).values()].reverse() };
}

/** See ONVIF PTZ Service Specification, section 5.9. */
async function readTours(place: Place) {
  const outcome = await read(place, 'GetPresetTours');
  const listed =
    outcome.kind === 'reply' ? all(find(outcome.body, 'getPresetToursResponse'), 'presetTour') : [];
  return listed
    .slice(0, presets_max)
    .map(labelOf)
    .filter(({ token }) => token !== '' && token.length <= token_chars_max);
}

/** It goes on until a stop ends it. */
async function startTour(parts: PtzParts, token: string, signal: AbortSignal): Promise<'seen' | 'accepted'> {
  const outcome = await begin(parts, operateTour(parts, token, 'Start'), signal);
  if (outcome.kind === 'fault') throw refusalOf(outcome);
  const tours = await untilAborted(readTours({ ...parts, signal }), signal);
  if (signal.aborted) {
    await stopForSure(parts, signal);
    throw new CommandRefused(texts.cancelled_stopped);
  }
  if (outcome.kind === 'failure') throw new CommandRefused(texts.movement_unknown(describe(outcome)));
  return tours?.some((tour) => tour.token === token && tour.state === 'touring') ? 'seen' : 'accepted';
}

/** Ends the tours that run: a Stop may end the way to the next position only. Resolves with why one was not ended. */
export async function endTours(place: Place): Promise<string | undefined> {
  let refusal: string | undefined;
  for (const { token, state } of await readTours(place)) {
    const outcome = state === 'idle' ? undefined : await operateTour(place, token, 'Stop');
    if (outcome && outcome.kind !== 'reply') refusal = describe(outcome);
  }
  return refusal;
}

async function operateTour(place: Place, token: string, what: 'Start' | 'Stop'): Promise<SoapOutcome> {
  const inner = `<PresetTourToken>${escapeXml(token)}</PresetTourToken><Operation>${what}</Operation>`;
  return place.soap.call(of(place, 'OperatePresetTour', inner));
}

/** A connection that waits for what is not wanted any more would keep a stop waiting. */
async function read(place: Place, name: string): Promise<SoapOutcome> {
  const { signal } = place;
  return place.soap.call({ ...of(place, name), ...(signal && { signal }) });
}

function of({ url, profile }: Place, name: string, inner = ''): Operation {
  return { ...operation('ptz', name, `${profileToken(profile)}${inner}`), url };
}

/** `state`: of a tour. */
function labelOf(node: XmlNode) {
  const state = textAt(node, 'status', 'state')?.toLowerCase();
  return {
    token: attribute(node, 'token') ?? '',
    name: textAt(node, 'name') ?? null,
    state,
    tour: undefined,
  };
}
