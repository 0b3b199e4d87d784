/** What must hold of a partner asset and of the fixes that are pushed for it. Every function throws a `RequestProblem`. */
import type { z } from 'zod';
import type { JsonObject } from '../contract/json.ts';
import { type createAsset, metadata_bytes_max, type pushLocation } from './api/requests.ts';
import { RequestProblem } from './api/problem.ts';
import { partner_assets_max } from './store/partners.ts';
import type { PushedFix, StoredAsset } from './store/store.ts';
import { texts } from './texts.ts';

/** Checks the size of the metadata, the parent and the number of partner assets; `assets` are those of the kit. */
export function checkNewPartner(
  assets: readonly StoredAsset[],
  { parent_id, metadata }: Pick<z.output<typeof createAsset>, 'parent_id' | 'metadata'>,
): void {
  checkMetadata(metadata);
  if (typeof parent_id === 'string' && !assets.some(({ id }) => id === parent_id)) {
    throw new RequestProblem('invalid-payload', texts.no_parent, {
      errors: [{ pointer: '#/parent_id', detail: texts.no_such_asset }],
    });
  }
  if (assets.filter(({ protocol }) => protocol === 'partner').length >= partner_assets_max) {
    throw new RequestProblem('conflict', texts.partners_max(partner_assets_max));
  }
}

/** Checks the size of the metadata. */
export function checkMetadata(metadata: JsonObject | null | undefined): void {
  const bytes = Buffer.byteLength(JSON.stringify(metadata ?? {}));
  if (bytes <= metadata_bytes_max) return;
  const detail = `${bytes} bytes; at most ${metadata_bytes_max}`;
  throw new RequestProblem('invalid-payload', texts.metadata_too_large, {
    errors: [{ pointer: '#/metadata', detail }],
  });
}

/** How old a pushed fix may be. */
const fix_age_ms_max = 86_400_000;
/** How far the clock of a partner may be ahead. */
const fix_ahead_ms_max = 60_000;

/** The fix as it is stored. A time that is ahead counts as now, so that it blocks no later fix. `at`: its place in the body. */
export function fixOf(
  { lat, lon, alt_m, bearing, speed_mps, timestamp }: z.output<typeof pushLocation>,
  { now_ms, at = '#' }: { readonly now_ms: number; readonly at?: string },
): Omit<PushedFix, 'asset_id'> {
  const fix_ms = typeof timestamp === 'string' ? Date.parse(timestamp) : now_ms;
  if (fix_ms > now_ms + fix_ahead_ms_max || fix_ms < now_ms - fix_age_ms_max) {
    const detail = `here it is ${new Date(now_ms).toISOString()}; at most ${fix_age_ms_max / 3_600_000} h before and ${fix_ahead_ms_max / 1_000} s after that`;
    throw new RequestProblem('invalid-payload', texts.fix_time, {
      errors: [{ pointer: `${at}/timestamp`, detail }],
    });
  }
  const fix = { lat, lon, alt_m: alt_m ?? null, bearing: bearing ?? null, speed_mps: speed_mps ?? null };
  return { fix, time_ms: Math.min(now_ms, fix_ms) };
}

/** Throws `conflict` when the asset is one of the kit. */
export function demandPartner(asset: StoredAsset, why: string): void {
  if (asset.protocol !== 'partner') throw new RequestProblem('conflict', `${asset.name} ${why}`);
}
