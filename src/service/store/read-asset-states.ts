/** Reads the status of all assets of many kits, for their summaries: without what the assets have announced. */
import { z } from 'zod';
import { assetStatus } from '../../contract/assets.ts';
import type { Queries } from './sql/database.ts';
import type { AssetState } from './store.ts';

/** Kits in one statement: databases limit the number of parameters. */
const kits_at_once = 500;

// Partner assets report no status: they are online.
const select = `SELECT assets.kit_id, assets.asset_id, COALESCE(asset_status.status, 'online') AS status FROM assets
  LEFT JOIN asset_status ON asset_status.kit_id = assets.kit_id AND asset_status.asset_id = assets.asset_id
  WHERE assets.gone = 0`;

const stateRow = z.object({ kit_id: z.string(), asset_id: z.string(), status: assetStatus });

export async function readAssetStates(
  queries: Queries,
  kit_ids: readonly string[] | '*',
): Promise<readonly AssetState[]> {
  if (kit_ids === '*') return z.array(stateRow).parse(await queries.all(select));
  const states: AssetState[] = [];
  for (let at = 0; at < kit_ids.length; at += kits_at_once) {
    const some = kit_ids.slice(at, at + kits_at_once);
    const places = some.map(() => '?').join(', ');
    const rows = await queries.all(`${select} AND assets.kit_id IN (${places})`, ...some);
    states.push(...z.array(stateRow).parse(rows));
  }
  return states;
}
