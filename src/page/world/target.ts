/** The place on the map where a person may send a drone. */
import { placeOfAsset } from './places.ts';
import type { LiveAsset, View } from '../types.d.ts';

export const fly_command = 'goto_waypoint';

/** The target that is set for this drone; it goes when the drone's position turns old. */
export function targetOf(asset: LiveAsset, view: View) {
  const { target } = view.choices;
  if (!target || target.asset_id !== asset.id) return undefined;
  const from = placeOfAsset(asset, view);
  return from && !from.isOld ? { target, from } : undefined;
}

/** Whether a tap on the map of this asset sets a target. */
export function canFly(asset: LiveAsset, view: View) {
  const commands = view.world.commands.get(asset.id) ?? [];
  if (view.choices.moment_ms !== null) return false;
  return commands.some(({ name }) => name === fly_command) && placeOfAsset(asset, view)?.isOld === false;
}
