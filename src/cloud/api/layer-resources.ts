/** The fleet as GeoJSON (RFC 7946): points only, and each property with one type in all of them, as GIS want a layer. */
import { z } from '@hono/zod-openapi';
import { assetStatus } from '../../contract/assets.ts';

const timestamp = z.iso.datetime();
const feature = z
  .strictObject({
    type: z.literal('Feature'),
    id: z.uuid(),
    geometry: z.strictObject({
      type: z.literal('Point'),
      coordinates: z
        .array(z.number())
        .min(2)
        .max(3)
        .describe('longitude, latitude, and the altitude in metres where it is known'),
    }),
    properties: z.strictObject({
      id: z.uuid(),
      kit_id: z.uuid(),
      kit_name: z.string(),
      name: z.string(),
      type: z.string(),
      status: assetStatus,
      last_seen_at: timestamp,
      positioned_at: timestamp.nullable().describe('time of the position; null: a fixed one of its settings'),
      heading: z.number().nullable().describe('degrees from north; null: not known'),
    }),
  })
  .openapi('AssetFeature');
export type AssetFeature = z.output<typeof feature>;

export const assetLayer = z
  .strictObject({ type: z.literal('FeatureCollection'), features: z.array(feature) })
  .openapi('AssetLayer');
