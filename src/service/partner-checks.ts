/** What must hold of a partner asset and of the fixes that are pushed for it. Every function throws a `RequestProblem`. */
import type { z } from 'zod';
import type { JsonObject } from '../contract/json.ts';
import { type createAsset, metadata_bytes_max, type pushLocation } from './api/requests.ts';
import { RequestProblem } from './api/problem.ts';
import { partner_assets_max } from './store/partner-sync.ts';
import type { PartnerFix, StoredAsset } from './store/store.ts';

/** Checks the size of the metadata, the parent and the number of partner assets; `assets` are those of the kit. */
export function checkNewPartner(
  assets: readonly StoredAsset[],
  { parent_id, metadata }: Pick<z.output<typeof createAsset>, 'parent_id' | 'metadata'>,
): void {
  checkMetadata(metadata);
  if (parent_id !== undefined && !assets.some(({ id }) => id === parent_id)) {
    throw new RequestProblem('invalid-payload', 'the parent asset does not exist', {
      errors: [{ pointer: '#/parent_id', detail: 'no asset of this kit has this id' }],
    });
  }
  if (assets.filter(({ protocol }) => protocol === 'partner').length >= partner_assets_max) {
    throw new RequestProblem('conflict', `a kit has at most ${partner_assets_max} partner assets`);
  }
}

/** Checks the size of the metadata. */
export function checkMetadata(metadata: JsonObject = {}): void {
  const bytes = Buffer.byteLength(JSON.stringify(metadata));
  if (bytes <= metadata_bytes_max) return;
  const detail = `${bytes} bytes; at most ${metadata_bytes_max}`;
  throw new RequestProblem('invalid-payload', 'the metadata is too large', {
    errors: [{ pointer: '#/metadata', detail }],
  });
}

/** The fix as it is stored. */
export function fixOf({ lat, lon, alt_m, bearing, speed_mps }: z.output<typeof pushLocation>): PartnerFix {
  return { lat, lon, alt_m: alt_m ?? null, bearing: bearing ?? null, speed_mps: speed_mps ?? null };
}

/** Throws `conflict` when the asset is one of the kit. */
export function demandPartner(asset: StoredAsset, why: string): void {
  if (asset.protocol !== 'partner') throw new RequestProblem('conflict', `${asset.name} ${why}`);
}
