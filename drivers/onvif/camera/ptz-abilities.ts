/** Reads what the PTZ service of a camera can do. */
import { operation, type Soap } from '../soap/soap.ts';
import { all, find, type XmlNode } from '../soap/xml.ts';
import { readPresets } from './presets.ts';
import type { PtzAbilities } from './ptz.ts';

/** See ONVIF PTZ Service Specification, section 5.1.1: the velocity spaces of the nodes. */
export async function readPtzAbilities(soap: Soap, url: string, profile: string): Promise<PtzAbilities> {
  const outcome = await soap.call({ ...operation('ptz', 'GetNodes'), url });
  const nodes = outcome.kind === 'reply' ? all(find(outcome.body, 'getNodesResponse'), 'ptzNode') : [];
  const hasZoom = nodes.some((node) => hasSpace(node, 'continuousZoomVelocitySpace'));
  const listed = await readPresets({ soap, url, profile });
  return {
    // A camera that does not describe its nodes pans and tilts.
    hasPanTilt: !hasZoom || nodes.some((node) => hasSpace(node, 'continuousPanTiltVelocitySpace')),
    hasZoom,
    presets: 'presets' in listed ? listed.presets : [],
  };
}

function hasSpace(node: XmlNode, space: string): boolean {
  return find(node, 'supportedPTZSpaces', space) !== undefined;
}
