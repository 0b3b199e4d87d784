/** What an earlier run left announced: the assets that are still configured, and the removal of the others. */
import { announcement, commandList } from '../../contract/assets.ts';
import { assetId } from '../../contract/identity.ts';
import { channelKind, channels } from '../../contract/topics.ts';
import { texts } from '../texts.ts';
import { Asset } from './asset.ts';
import type { AssetsParts } from './assets.ts';

/** Restores the announcements of an earlier run, and retracts those whose driver is not configured. */
export function restoreAssets(parts: AssetsParts): Map<string, Asset> {
  const left = parts.announced.filter(
    ({ channel, body }) => channelKind(channel) === 'asset' && body !== 'null',
  );
  const bodies = new Map(left.map(({ channel, body }) => [channel, parsed(body)]));
  const found = new Map<string, Asset>();
  for (const body of bodies.values()) {
    const { data: earlier } = announcement.safeParse(body);
    if (!earlier || !parts.configured.includes(earlier.driver)) continue;
    // Ids derived from another kit_id no longer belong to this kit.
    if (earlier.id !== assetId(parts.kit_id, earlier.asset_key)) continue;
    const { data: commands } = commandList.safeParse(bodies.get(channels.commands(earlier.id)));
    found.set(earlier.asset_key, Asset.restore(parts, earlier, commands));
  }
  const kept = new Set(
    [...found.values()].flatMap(({ facts: { id } }) => [channels.asset(id), channels.commands(id)]),
  );
  for (const channel of bodies.keys()) {
    if (kept.has(channel)) continue;
    const gone = announcement.safeParse(bodies.get(channel)).data;
    // Its commands go with it.
    if (gone) {
      const { asset_key, name } = gone;
      parts.log.info({ asset_key, name }, texts.asset_not_configured);
    }
    parts.outbox.append({ channel, lane: 'presence', data: null });
  }
  return found;
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
