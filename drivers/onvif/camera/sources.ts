/** Divides a device into its video sources: the channels of a recorder or an encoder, the lenses of a camera. */
import { operation, type ServiceName, type Soap } from '../soap/soap.ts';
import { all, attribute, everywhere, find, type XmlNode } from '../soap/xml.ts';
import type { Media, Profile } from './media.ts';

export interface VideoSource {
  /** Empty where the camera names none. */
  readonly token: string;
  readonly profiles: readonly Profile[];
}

/**
 * The video sources that have a picture, in the order in which the device lists them, and all profiles with the source that they belong to.
 * @param chosen By the options: they count also where the device does not list them; empty: none is
 */
export async function readSources(
  soap: Soap,
  services: ReadonlyMap<ServiceName, string>,
  { profiles }: Pick<Media, 'profiles'>,
  chosen: readonly string[],
): Promise<{ readonly sources: readonly VideoSource[]; readonly profiles: readonly Profile[] }> {
  const named = [...new Set(profiles.map(({ source }) => source).filter((token) => token !== ''))];
  const listed = named.length > 1 ? await listedSources(soap, services) : [];
  // Some cameras name a source for each of their streams, and list one (onvif/specs#164).
  const isEachStream = named.length === profiles.length && named.length <= streams_max;
  const isOnePicture = isEachStream && listed.length === 1 && chosen.length === 0;
  // Most recorders list the channels that have a camera, and profiles of all (onvif/specs#470).
  const isListed = named.some((token) => listed.includes(token));
  const real = named.filter((token) => !isListed || listed.includes(token) || chosen.includes(token));
  const first = real[0] ?? '';
  const own = profiles.map((each) =>
    each.source === '' || (isOnePicture && each.source !== first) ? { ...each, source: first } : each,
  );
  const groups = Map.groupBy(own, ({ source }) => source);
  const sources = Array.from(groups, ([token, group]) => ({ token, profiles: group }));
  // Others name no encoder where there is no camera (agsh/onvif#369).
  const shown = sources.filter(
    ({ token, profiles: group }) =>
      (token === first || real.includes(token)) && group.some(({ encoding }) => encoding !== undefined),
  );
  return { sources: shown.length > 0 ? shown : sources.slice(0, 1), profiles: own };
}
/** Of one picture. */
const streams_max = 3;

/** By Media, else by Device IO, which devices with Media2 alone have; empty where neither answers. */
async function listedSources(
  soap: Soap,
  services: ReadonlyMap<ServiceName, string>,
): Promise<readonly string[]> {
  for (const service of ['media', 'deviceio'] as const) {
    const url = services.get(service);
    if (url === undefined) continue;
    const outcome = await soap.call({ ...operation(service, 'GetVideoSources'), url });
    const answer = outcome.kind === 'reply' ? find(outcome.body, 'getVideoSourcesResponse') : undefined;
    const tokens = [
      ...all(answer, 'videoSources').map((source) => attribute(source, 'token')),
      ...all(answer, 'token').map(({ text }) => text),
    ].filter((token) => token !== undefined);
    if (tokens.length > 0) return tokens;
  }
  return [];
}

/** The messages of each video source; of the empty token are those that name none which the device has. */
export function divide(body: XmlNode, profiles: readonly Profile[]): ReadonlyMap<string, XmlNode> {
  const messages = everywhere(body, 'notificationMessage');
  const groups = Map.groupBy(messages, (message) => sourceOf(message, profiles) ?? '');
  const bodies = Array.from(groups, ([token, own]): [string, XmlNode] => [
    token,
    { text: '', attributes: {}, children: { notificationmessage: own } },
  ]);
  return new Map(bodies);
}

/** Makers fill the items with whichever of these tokens they like, also under the name of another. */
const tokens_of_items = [
  [/analytics/iu, ['analytics', 'configuration', 'source']],
  [/config/iu, ['configuration', 'source']],
  [/profile/iu, ['token']],
  [/source/iu, ['source', 'configuration']],
] as const satisfies readonly (readonly [RegExp, readonly (keyof Profile)[]])[];

/** See ONVIF Core, section 9.4.2: the source of a message. */
function sourceOf(notification: XmlNode, profiles: readonly Profile[]): string | undefined {
  const message = find(notification, 'message', 'message') ?? find(notification, 'message');
  for (const item of all(find(message, 'source'), 'simpleItem')) {
    const name = attribute(item, 'name') ?? '';
    const value = attribute(item, 'value') ?? '';
    const fields = tokens_of_items.find(([kind]) => kind.test(name))?.[1] ?? [];
    for (const field of fields) {
      const profile = value === '' ? undefined : profiles.find((each) => each[field] === value);
      if (profile) return profile.source;
    }
  }
  return undefined;
}

/** Keys and names of the video sources, the first of which is the device itself. */
export interface SourcePlan {
  /** In the order in which they were first seen, or of the options. */
  readonly tokens: readonly [string, ...string[]];
  /** Chosen, and neither listed now nor ever before. */
  readonly unknown: readonly string[];
}

/**
 * The first source has the key of the device, and keeps it while it is away: a recorder lists the cameras that it reaches now.
 * @param remembered Of earlier connections; of another device when it has none in common
 * @param chosen By the options; undefined: all
 */
export function planSources(
  listed: readonly string[],
  remembered: readonly string[],
  chosen: readonly string[] | undefined,
): SourcePlan {
  const wanted = chosen ?? listed;
  const isSame = remembered.some((token) => listed.includes(token));
  const known = isSame ? remembered.filter((token) => chosen?.includes(token) ?? true) : [];
  const [first = '', ...others] = new Set([...known, ...wanted]);
  const unknown = wanted.filter((token) => !listed.includes(token) && !known.includes(token));
  return { tokens: [first, ...others], unknown };
}
