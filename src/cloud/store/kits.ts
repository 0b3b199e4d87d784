/** Kits and assets in the tables: their newest values, as kits reported them. */
import { z } from 'zod';
import { assetStatus, type CommandDefinition } from '../../contract/assets.ts';
import { feeds_max } from '../../contract/limits.ts';
import { type Holes, readHoles, readStored } from '../stored/received/received-numbers.ts';
import {
  asset_select,
  assetOf,
  commandsOf,
  evidenceOf,
  placed_select,
  placedOf,
  withoutParent,
} from '../stored/rows.ts';
import { feedOf } from '../stored/plain-rows.ts';
import { inPortions } from '../sql/many-rows.ts';
import { clause, listed, nothing, raw, sql, type Queries, type Row } from '../sql/database.ts';
import type {
  AssetState,
  KitLabel,
  PlacedAsset,
  StoreContext,
  StoredAsset,
  StoredFeed,
  StoredKit,
} from '../stored/stored.ts';

/** Kits in one statement: databases limit the number of parameters. */
const kits_at_once = 500;
/** Of the names under which the service keeps what operators call kits. */
const label_prefix = 'kit ';

/** The name in the table `service` of what operators call a kit. */
export function labelName(kit_id: string): string {
  return `${label_prefix}${kit_id}`;
}
const kitLabel = z.object({
  name: z.string().nullable(),
  tags: z.array(z.string()),
  time_zone: z.string().nullish(),
});

export function kitStore({ database }: StoreContext) {
  return {
    async kitIds(): Promise<readonly string[]> {
      const rows = await database.all('SELECT kit_id FROM kits ORDER BY kit_id');
      return rows.map((row) => String(row['kit_id']));
    },

    kits: async (kit_ids: readonly string[] | '*') => readKits(database, kit_ids),

    kit: async (kit_id: string) => (await readKits(database, [kit_id]))[0],

    async setKitLabel(kit_id: string, label: KitLabel): Promise<void> {
      await sql(database)`INSERT INTO service (name, value) VALUES (${labelName(kit_id)},
        ${JSON.stringify(label)}) ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
    },

    assetStates: async (kit_ids: readonly string[] | '*') => readAssetStates(database, kit_ids),

    async placedAssets(kit_ids: readonly string[]): Promise<readonly PlacedAsset[]> {
      const rows = await inPortions(
        kit_ids,
        async (some) =>
          sql(database)`${raw(placed_select)} WHERE gone = 0 AND assets.kit_id IN (${listed(some)})`,
      );
      return rows.map(placedOf);
    },

    async assets(kit_id: string): Promise<readonly StoredAsset[]> {
      const rows = await sql(database)`${raw(asset_select)} WHERE assets.kit_id = ${kit_id} AND gone = 0`;
      const assets = rows.map(assetOf);
      const ids = new Set(assets.map(({ id }) => id));
      // An asset whose parent is gone is a root, until the parent comes back.
      return assets.map((asset) => (ids.has(asset.parent_id ?? asset.id) ? asset : withoutParent(asset)));
    },

    async asset(kit_id: string, asset_id: string): Promise<StoredAsset | undefined> {
      const [row] = await sql(database)`${raw(asset_select)} WHERE assets.kit_id = ${kit_id}
        AND assets.asset_id = ${asset_id} AND gone = 0`;
      if (!row) return undefined;
      const asset = assetOf(row);
      if (asset.parent_id === null) return asset;
      const [parent] = await sql(database)`SELECT 1 AS here FROM assets
        WHERE kit_id = ${kit_id} AND asset_id = ${asset.parent_id} AND gone = 0`;
      return parent ? asset : withoutParent(asset);
    },

    async commands(kit_id: string, asset_id: string): Promise<readonly CommandDefinition[]> {
      const [row] = await sql(database)`SELECT data FROM commands WHERE kit_id = ${kit_id}
        AND asset_id = ${asset_id}`;
      return row ? commandsOf.parse(row['data']) : [];
    },

    async feeds(kit_id: string, asset_id: string): Promise<readonly StoredFeed[]> {
      const rows = await sql(database)`SELECT 'gps' AS feed, time_ms, data
        FROM partner_fixes WHERE kit_id = ${kit_id} AND asset_id = ${asset_id}
        UNION ALL SELECT feed, time_ms, data FROM feeds WHERE kit_id = ${kit_id}
          AND asset_id = ${asset_id} AND NOT EXISTS (
          SELECT 1 FROM partner_fixes WHERE partner_fixes.kit_id = feeds.kit_id
            AND partner_fixes.asset_id = feeds.asset_id AND feeds.feed = 'gps')
        ORDER BY feed LIMIT ${feeds_max}`;
      return rows.map(feedOf);
    },

    /** All that is stored for this kit, newest epoch first; of any number of ranges. */
    acks: async (kit_id: string) => readStored(database, kit_id),

    /** 0: nothing is stored for this kit. */
    async newestEpoch(kit_id: string): Promise<number> {
      const [row] = await database.all('SELECT MAX(epoch) AS newest FROM received WHERE kit_id = ?', kit_id);
      return Number(row?.['newest'] ?? 0);
    },
  };
}

/** The kits that are known among these, by id. */
async function readKits(queries: Queries, kit_ids: readonly string[] | '*'): Promise<readonly StoredKit[]> {
  const kits: StoredKit[] = [];
  for (const some of portionsOf(kit_ids)) kits.push(...(await readSome(queries, some)));
  return kits;
}

/** `*` alone, or the ids in portions. */
function portionsOf(kit_ids: readonly string[] | '*'): readonly (readonly string[] | '*')[] {
  if (kit_ids === '*') return [kit_ids];
  const starts = Array.from(
    { length: Math.ceil(kit_ids.length / kits_at_once) },
    (_, at) => at * kits_at_once,
  );
  return starts.map((at) => kit_ids.slice(at, at + kits_at_once));
}

async function readSome(queries: Queries, kit_ids: readonly string[] | '*'): Promise<StoredKit[]> {
  const where = kit_ids === '*' ? nothing : clause`WHERE kit_id IN (${listed(kit_ids)})`;
  const kits = await sql(queries)`SELECT * FROM kits ${where} ORDER BY kit_id`;
  const parts = Map.groupBy(
    await sql(queries)`SELECT kit_id, part, data, time_ms, epoch FROM kit_parts ${where}`,
    (row) => String(row['kit_id']),
  );
  const holesOf = await readHoles(queries, where);
  const labels = await readLabels(queries, kit_ids);
  return kits.map((row) => {
    const kit_id = String(row['kit_id']);
    return kitOf(row, { label: labels.get(kit_id), parts: parts.get(kit_id) ?? [], holes: holesOf(kit_id) });
  });
}

async function readLabels(
  queries: Queries,
  kit_ids: readonly string[] | '*',
): Promise<ReadonlyMap<string, KitLabel>> {
  const which =
    kit_ids === '*' ? clause`LIKE ${`${label_prefix}%`}` : clause`IN (${listed(kit_ids.map(labelName))})`;
  const rows = await sql(queries)`SELECT name, value FROM service WHERE name ${which}`;
  return new Map(
    rows.map((row) => [
      String(row['name']).slice(label_prefix.length),
      kitLabel.parse(JSON.parse(String(row['value']))),
    ]),
  );
}

interface Beside {
  readonly label: KitLabel | undefined;
  readonly parts: readonly Row[];
  readonly holes: Holes;
}

function kitOf(row: Row, { label, parts, holes }: Beside) {
  const count = (name: string): number => Number(row[name]);
  const dropped = count('dropped');
  // Epochs that an earlier version has stored share what is left of all reports.
  const unsorted = Math.max(0, holes.unsorted - Math.max(0, dropped + count('superseded') - holes.dropped));
  return {
    ...evidenceOf(row, parts),
    label,
    counts: {
      received: count('received'),
      duplicates: count('duplicates'),
      missing: holes.missing + unsorted,
      dropped,
      refused: count('refused'),
    },
  };
}

const stateRow = z.object({ kit_id: z.string(), asset_id: z.string(), status: assetStatus });

async function readAssetStates(
  queries: Queries,
  kit_ids: readonly string[] | '*',
): Promise<readonly AssetState[]> {
  const found: Row[] = [];
  for (const some of portionsOf(kit_ids)) {
    const those = some === '*' ? nothing : clause`AND assets.kit_id IN (${listed(some)})`;
    // Partner assets report no status: they are online.
    const rows = await sql(queries)`SELECT assets.kit_id, assets.asset_id,
        COALESCE(asset_status.status, 'online') AS status
      FROM assets LEFT JOIN asset_status ON asset_status.kit_id = assets.kit_id
        AND asset_status.asset_id = assets.asset_id
      WHERE assets.gone = 0 ${those}`;
    found.push(...rows);
  }
  return z.array(stateRow).parse(found);
}
