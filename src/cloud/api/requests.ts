/**
 * What clients send. Orders and changes with unknown keys are refused: a misspelt one would be lost in silence. In what is
 * registered and pushed unknown keys are left out: clients send what they have. Null stands for an optional field that is not given,
 * for the same reason; in a change it would be ambiguous, and is refused there.
 */
import { z } from '@hono/zod-openapi';
import { latitude, longitude } from '../../contract/assets.ts';
import { type Json, jsonObject } from '../../contract/json.ts';
import { time_chars_max } from '../../contract/limits.ts';
import { cleanText } from '../../platform/foreign-text.ts';
import { isZone, zonedTime } from './times.ts';

export const name_chars_max = 100;
/** Of a kit. */
const tags_max = 20;
/** Of the JSON text. */
export const metadata_bytes_max = 16_384;

/** One half of a surrogate pair cannot be stored as UTF-8, and control characters change how a name is shown. What is not drawn is left out. */
const text = z
  .string()
  .trim()
  .max(name_chars_max)
  .refine(
    (text) => text.isWellFormed() && !/\p{Cc}/u.test(text),
    'holds control characters or half a surrogate pair',
  )
  .overwrite(cleanText);
export const label = text.min(1);

export const zoneName = z
  .string()
  .max(64)
  .refine((name) => isZone(name), 'is no time zone; write an IANA name, such as Europe/Zurich');

/** What is kept and passed on as it is: a number beyond all floating point ones would become null, and half a pair stops readers. */
const freeForm = jsonObject
  .refine(
    (value) => every(value, (each) => each !== Infinity && each !== -Infinity),
    'holds a number that is too large',
  )
  .refine(
    (value) => every(value, (each) => typeof each !== 'string' || each.isWellFormed()),
    'holds half a surrogate pair',
  );

/** Whether all values and keys are so. The depth of a body is bounded. */
function every(value: Json | undefined, isSo: (each: unknown) => boolean): boolean {
  if (typeof value !== 'object' || value === null) return isSo(value);
  return Object.entries(value).every(([key, inner]) => isSo(key) && every(inner, isSo));
}

export const createAsset = z
  .object({
    name: label,
    type: label.describe('drone, camera, sensor, vehicle, or any other name'),
    vendor: text.nullish(),
    model: text.nullish(),
    metadata: freeForm.nullish().describe(`free form, at most ${metadata_bytes_max} bytes`),
    parent_id: z.uuid().toLowerCase().nullish(),
  })
  .openapi('CreateAsset');

export const changeKit = z
  .strictObject({
    name: label.nullable().optional().describe('null: as the kit calls itself'),
    tags: z
      .array(label)
      .max(tags_max)
      .optional()
      .describe('words by which operators group kits; all of them'),
    time_zone: zoneName
      .nullable()
      .optional()
      .describe('whose days its daily figures have (`tz=kit`); null: none'),
  })
  .refine((change) => Object.keys(change).length > 0, 'send at least one field')
  .openapi('ChangeKit', { minProperties: 1 });
export const changeAsset = z
  .strictObject({
    name: label.optional(),
    metadata: freeForm
      .optional()
      .describe(`replaces the metadata as a whole; at most ${metadata_bytes_max} bytes`),
  })
  .refine((change) => Object.keys(change).length > 0, 'send `name`, `metadata` or both')
  .openapi('ChangeAsset', { minProperties: 1 });

export const sendCommand = z
  .strictObject({ payload: freeForm.nullish().describe('according to the input_schema of the command') })
  .openapi('SendCommand');

const fix = {
  lat: latitude,
  lon: longitude,
  alt_m: z.number().min(-1_000).max(100_000).nullish().describe('metres above the WGS-84 ellipsoid'),
  bearing: z.number().min(0).max(360).nullish().describe('degrees true north'),
  speed_mps: z.number().min(0).max(100_000).nullish().describe('metres per second'),
  timestamp: zonedTime
    .max(time_chars_max)
    .nullish()
    .describe(
      'when the position was measured: at most 24 h ago, and at most a minute ahead, which counts as now; left out: now',
    ),
};

export const pushLocation = z.object(fix).openapi('PushLocation');

/** Fixes of one request. */
const fixes_max = 256;

export const pushLocations = z
  .strictObject({
    locations: z
      .array(z.object({ asset_id: z.uuid().toLowerCase(), ...fix }).openapi('AssetLocation'))
      .min(1)
      .max(fixes_max)
      .describe(
        'of one asset the newest one by `timestamp`, and of equal times the last one, is its position',
      ),
  })
  .openapi('PushLocations');

export const openSession = z.strictObject({ api_key: z.string().min(1).max(256) }).openapi('OpenSession');
