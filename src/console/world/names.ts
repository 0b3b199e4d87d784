/** Names of assets of other kits than the one that is shown: asked for once they are needed, one kit at a time. */
import { field, listIn, textIn } from '../json.ts';
import { ask } from './api.ts';
import type { View } from '../types.d.ts';

const names: Map<string, string> = new Map();
/** When each kit was asked, by `performance.now`. */
const asked: Map<string, number> = new Map();
const again_ms = 60_000;
let isBusy = false;

/** Empty while it is not known. */
export function assetName({ world, act }: View, kit_id: string, asset_id: string): string {
  const name = world.assets.get(asset_id)?.name ?? names.get(asset_id);
  const isDue = performance.now() - (asked.get(kit_id) ?? -again_ms) >= again_ms;
  if (name === undefined && asset_id !== '' && isDue && !isBusy) void load(kit_id, act.arrived);
  return name ?? '';
}

async function load(kit_id: string, onNews: () => void) {
  isBusy = true;
  asked.set(kit_id, performance.now());
  try {
    const answer = await ask('GET', `/api/kits/${kit_id}/assets`);
    for (const asset of listIn(field(answer, 'assets')))
      names.set(textIn(field(asset, 'id')), textIn(field(asset, 'name')));
  } catch {
    // Asked again later.
  }
  isBusy = false;
  onNews();
}
