/** Rows of the tables as the values that the rest of the service knows. What stands in the tables was checked on its way in. */
import { z } from 'zod';
import { announcement, assetStatus, commandDefinition, latitude, longitude } from '../../contract/assets.ts';
import { json, jsonObject } from '../../contract/json.ts';
import { partnerFix } from '../../contract/partners.ts';
import { kitState } from '../../contract/presence.ts';
import { jsonText, number, numberOrNull, text } from '../sql/columns.ts';
import type { Row } from '../sql/database.ts';
import { lossesOf } from './losses.ts';
import { feedRow } from './plain-rows.ts';
import type { PlacedAsset, PushedMessage, StoredAsset, StoredKit } from './stored.ts';

const pushedRow = feedRow.extend({ data: jsonText.pipe(partnerFix.strip()) });

/** A fix of a partner asset. */
export function pushedOf(row: Row): PushedMessage {
  return pushedRow.parse(row);
}

/** Rows that were stored before the contract had limits are read as they are. */
const assetData = announcement
  .extend({
    asset_key: text,
    name: text,
    type: text,
    vendor: text.nullable(),
    model: text.nullable(),
    firmware: text.nullable(),
    protocol: text,
    status_reason: text.nullable(),
    last_seen_at: text,
    whep_url: text.nullable(),
    feeds: z.array(text),
    metadata: jsonObject.default({}),
  })
  .omit({ driver: true })
  .strip();

/**
 * `row` is one of `assets`, with `status` and `reason` of `asset_status` where there is one, and `fed_ms`, the time of the
 * newest feed message that is newer than the announcement: the asset was seen then.
 */
export function assetOf(row: Row): StoredAsset {
  const announced = jsonText.pipe(assetData).parse(row['data']);
  const fed_ms = row['fed_ms'] ?? null;
  const last_seen_at = fed_ms === null ? announced.last_seen_at : new Date(Number(fed_ms)).toISOString();
  const asset = { ...announced, last_seen_at, ...positionOf(row) };
  const status = assetStatus.safeParse(row['status']).data;
  if (!status) return asset;
  return { ...asset, status, status_reason: text.nullable().parse(row['reason']) };
}

const fixData = jsonText.pipe(z.object({ lat: z.number(), lon: z.number() }));

/** Fields of a partner asset that its newest fix contains. */
function positionOf(row: Row) {
  const { fix = null, fix_alt_m, fix_ms } = row;
  if (fix === null) return {};
  const { lat, lon } = fixData.parse(fix);
  const alt_m = z.number().nullable().parse(fix_alt_m);
  return { lat, lon, alt_m, last_seen_at: new Date(Number(fix_ms)).toISOString() };
}

export const commandsOf = jsonText.pipe(
  z.array(commandDefinition.extend({ name: text, description: text, input_schema: z.record(text, json) })),
);
export const jsonOf = jsonText.pipe(json);
/** What the kit reported about itself, and when by its own clock. */
const storedState = kitState.extend({
  name: text.nullish(),
  boot: text,
  software: text,
  degraded: z.array(text),
  reason: text.nullable(),
  said_ms: number.optional(),
});
export const stateOf = jsonText.pipe(storedState);

const range = z.tuple([z.number(), z.number()]);
export const rangesOf = jsonText.pipe(z.array(range));

const asset_columns = `assets.data, asset_status.status, asset_status.reason,
  (SELECT feeds.time_ms FROM feeds WHERE feeds.kit_id = assets.kit_id AND feeds.asset_id = assets.asset_id
     AND (feeds.epoch, feeds.seq) >= (assets.epoch, assets.seq)
   ORDER BY feeds.epoch DESC, feeds.seq DESC LIMIT 1) AS fed_ms,
  partner_fixes.data AS fix, partner_fixes.alt_m AS fix_alt_m, partner_fixes.time_ms AS fix_ms`;
const asset_tables = `assets
  LEFT JOIN asset_status ON asset_status.kit_id = assets.kit_id AND asset_status.asset_id = assets.asset_id
  LEFT JOIN partner_fixes ON partner_fixes.kit_id = assets.kit_id AND partner_fixes.asset_id = assets.asset_id`;

export const asset_select = `SELECT ${asset_columns} FROM ${asset_tables}`;

/** Assets of several kits, with what their feed \`gps\` says. */
export const placed_select = `SELECT assets.kit_id, gps.data AS gps, gps.time_ms AS gps_ms, ${asset_columns} FROM ${asset_tables}
  LEFT JOIN feeds AS gps ON gps.kit_id = assets.kit_id AND gps.asset_id = assets.asset_id AND gps.feed = 'gps'`;

const gpsFeed = z.object({
  lat: latitude,
  lon: longitude,
  alt_m: z.number().nullish(),
  heading: z.number().nullish(),
});

export function placedOf(row: Row): PlacedAsset {
  const asset = assetOf(row);
  const kit_id = String(row['kit_id']);
  if (typeof row['fix'] === 'string')
    return { kit_id, asset, fix: { ...asset, time_ms: Number(row['fix_ms']) } };
  // A drone without a fix says so.
  const gps = jsonText.pipe(gpsFeed).safeParse(row['gps']).data;
  return { kit_id, asset, fix: gps && { ...gps, time_ms: Number(row['gps_ms']) } };
}

export function withoutParent(asset: StoredAsset): StoredAsset {
  return { ...asset, parent_id: null };
}

/** What is known of a kit, without its counts. `parts`: rows of `kit_parts`. */
export function evidenceOf(row: Row, parts: readonly Row[]): Omit<StoredKit, 'counts'> {
  return {
    kit_id: String(row['kit_id']),
    state: row['state'] === null ? undefined : stateOf.parse(row['state']),
    // 0: only retained messages that could not be read.
    heard_ms: Number(row['heard_ms']) || null,
    vouched_ms: numberOrNull.parse(row['vouched_ms']),
    since_ms: numberOrNull.parse(row['since_ms']),
    parts: Object.fromEntries(
      parts.map((part) => [
        String(part['part']),
        {
          time_ms: Number(part['time_ms']),
          data: jsonOf.parse(part['data']),
          epoch: Number(part['epoch']),
        },
      ]),
    ),
    losses: lossesOf(row['losses']),
    lag: lagOf(row),
  };
}

export function lagOf({ lag_ms, lag_since_ms }: Row): StoredKit['lag'] {
  const late_ms = Number(lag_ms ?? 0);
  return late_ms === 0 ? undefined : { lag_ms: late_ms, since_ms: Number(lag_since_ms) };
}
