/** What the motor of a camera can do, as its PTZ node describes it (ONVIF PTZ Service Specification, sections 5.1 and 5.7). */
import { all, attribute, find, textAt, truth, type XmlNode } from '../soap/xml.ts';
import { operation } from '../soap/soap.ts';
import { type Preset, readPresets } from './presets.ts';
import type { Motor } from './ptz-stop.ts';

export type Direction = (typeof vertical | typeof horizontal)[number];
const vertical = ['up', 'down'] as const;
const horizontal = ['left', 'right'] as const;

export interface PtzAbilities {
  /** In which it moves continuously; empty: it does not. */
  readonly directions: readonly Direction[];
  readonly hasZoom: boolean;
  readonly absolute: Spaces;
  readonly relative: Spaces;
  readonly hasHome: boolean;
  readonly hasTours: boolean;
  readonly hasPresets: boolean;
  /** As the camera lists them now; empty: none, or not readable. */
  readonly presets: readonly Preset[];
  /** What SendAuxiliaryCommand of the PTZ service takes. */
  readonly auxiliary: readonly string[];
}

/** Coordinates of positions or of ways; undefined where the camera has none. */
export interface Spaces {
  readonly pan_tilt: Space | undefined;
  readonly zoom: Space | undefined;
}

export interface Space {
  readonly uri: string;
  readonly x: Range | undefined;
  readonly y: Range | undefined;
}

interface Range {
  readonly min: number;
  readonly max: number;
}

/** Of generic spaces. */
const generic: Range = { min: -1, max: 1 };
const auxiliary_max = 64;
/** ONVIF schema, AuxiliaryData. */
const auxiliary_chars_max = 128;

/** @param ptz_node Of the profile; empty where it names none: all nodes count then. */
export async function readPtzAbilities(motor: Omit<Motor, 'axis'>, ptz_node: string): Promise<PtzAbilities> {
  const { soap, url } = motor;
  const outcome = await soap.call({ ...operation('ptz', 'GetNodes'), url });
  const listed = outcome.kind === 'reply' ? all(find(outcome.body, 'getNodesResponse'), 'ptzNode') : [];
  const own = listed.filter((node) => attribute(node, 'token') === ptz_node);
  const nodes = own.length > 0 ? own : listed;
  const found = spacesOf(nodes);
  const isDescribed = found.size > 0;
  const move = usable(found.get('continuouspantiltvelocityspace'));
  const hasTours = nodes.some((node) => tours(node) > 0);
  const read = await readPresets(motor, hasTours);
  const presets = 'presets' in read ? read.presets : [];
  const hasNoPresets =
    ('isUnsupported' in read && read.isUnsupported) ||
    (nodes.length > 0 && nodes.every((node) => textAt(node, 'maximumNumberOfPresets') === '0'));
  return {
    // A camera that does not describe its nodes pans and tilts.
    directions: isDescribed ? directionsOf(move) : directionsOf({ uri: '', x: generic, y: generic }),
    hasZoom: usable(found.get('continuouszoomvelocityspace'))?.x !== undefined,
    absolute: {
      pan_tilt: usable(found.get('absolutepantiltpositionspace'), [/Generic/u]),
      zoom: usable(found.get('absolutezoompositionspace'), [/Generic/u]),
    },
    relative: {
      // Parts of the picture are what an operator sees.
      pan_tilt: usable(found.get('relativepantilttranslationspace'), [/SpaceFov$/u, /Generic/u]),
      zoom: usable(found.get('relativezoomtranslationspace'), [/Generic/u]),
    },
    hasHome: nodes.some((node) => truth(textAt(node, 'homeSupported')) === true),
    hasTours,
    hasPresets: presets.length > 0 || !hasNoPresets,
    presets,
    auxiliary: auxiliaryOf(nodes.flatMap((node) => all(node, 'auxiliaryCommands').map(({ text }) => text))),
  };
}

/** Commands that can be sent as they stand. */
export function auxiliaryOf(texts: readonly string[]): readonly string[] {
  const fitting = texts
    .map((text) => text.trim())
    .filter((text) => text !== '' && text.length <= auxiliary_chars_max);
  return [...new Set(fitting)].slice(0, auxiliary_max);
}

/** By name, in lower case. */
function spacesOf(nodes: readonly XmlNode[]): ReadonlyMap<string, readonly Space[]> {
  const found = new Map<string, Space[]>();
  for (const node of nodes) {
    for (const [name, spaces] of Object.entries(find(node, 'supportedPTZSpaces')?.children ?? {})) {
      const read = spaces.map((space) => ({
        uri: textAt(space, 'uri') ?? '',
        x: rangeOf(space, 'xRange'),
        y: name.includes('pantilt') ? rangeOf(space, 'yRange') : undefined,
      }));
      found.set(name, [...(found.get(name) ?? []), ...read]);
    }
  }
  return found;
}

/** Undefined where nothing moves: some firmware lists what the motor has not, from 0 to 0 (blakeblackshear/frigate#14170). */
function rangeOf(space: XmlNode, axis: string): Range | undefined {
  const range = find(space, axis);
  if (!range) return generic;
  const [min = 0, max = 0] = ['min', 'max'].map((end) => Number(textAt(range, end)));
  return min < max && Number.isFinite(max - min) ? { min, max } : undefined;
}

/** The first space of a motor, the preferred kinds first: digital ones choose a part of the picture (blakeblackshear/frigate#8044). */
function usable(spaces: readonly Space[] = [], preferred: readonly RegExp[] = []): Space | undefined {
  const moving = spaces.filter(({ uri, x, y }) => !/Digital/iu.test(uri) && (x ?? y) !== undefined);
  const [best] = preferred.flatMap((kind) => moving.filter(({ uri }) => kind.test(uri)));
  return best ?? moving[0];
}

function directionsOf(space: Space | undefined): readonly Direction[] {
  return [...(space?.y ? vertical : []), ...(space?.x ? horizontal : [])];
}

function tours(node: XmlNode): number {
  return Number(textAt(node, 'extension', 'supportedPresetTour', 'maximumNumberOfPresetTours') ?? 0);
}
