/** Partner assets, which clients of either service register: the kit's own one and the cloud's. Both keep the same ones. */
import { z } from 'zod';
import { altitude_m, latitude, longitude } from './assets.ts';
import { jsonObject } from './json.ts';
import { name_chars_max, time_chars_max } from './limits.ts';

const label = z.string().min(1).max(name_chars_max);
const time = z.iso.datetime().max(time_chars_max);

/** On `up/partner/{asset_id}`, retained. Null: the asset was removed, which is final. */
export const partnerRecord = z.strictObject({
  id: z.uuid(),
  revision: z
    .int()
    .positive()
    .describe('rises with each change; of two with the same one the kit has the right one'),
  name: label,
  type: label,
  vendor: label.nullable(),
  model: label.nullable(),
  metadata: jsonObject,
  parent_id: z.uuid().nullable(),
  created_at: time,
  created_by: z.string().max(name_chars_max).nullable().describe('label of the API key that registered it'),
});
export type PartnerRecord = z.output<typeof partnerRecord>;

/** A fix that was pushed, as the `gps` feed of a partner asset has it. */
export const partnerFix = z.strictObject({
  lat: latitude,
  lon: longitude,
  alt_m: altitude_m.nullable(),
  bearing: z.number().min(0).max(360).nullable(),
  speed_mps: z.number().min(0).nullable(),
  source: z.string().max(name_chars_max),
  timestamp: time,
});

export type PartnerFixMessage = z.output<typeof partnerFix>;

/** On `down/partner/{asset_id}`, not retained: what the cloud has of an asset. The kit answers with its own record. */
export const partnerChange = z.looseObject({
  record: z.looseObject(partnerRecord.shape).nullable().describe('null: removed'),
  fix: z.looseObject(partnerFix.shape).nullish().describe('the newest fix that was pushed at the cloud'),
});
export type PartnerChange = z.output<typeof partnerChange>;
