/** API keys, as clients read and make them. */
import { z } from '@hono/zod-openapi';
import { scopes } from '../scopes.ts';
import { label } from './requests.ts';
import { zonedTime } from './times.ts';

/** The secret before a rotation stays valid for so long, so that the client can take the new one. */
export const rotated_valid_ms = 24 * 3_600_000;
const kits_max = 1_000;

const timestamp = z.iso.datetime();
const kits = z
  .union([z.literal('*'), z.array(z.uuid().toLowerCase()).min(1).max(kits_max)])
  .describe('ids of kits, or `*` for all, also later ones');

export const key = z
  .strictObject({
    id: z.string().describe('second part of the key, which is no secret'),
    label: z.string(),
    scopes: z.array(z.string()),
    kits,
    created_at: timestamp,
    expires_at: timestamp.optional().describe('absent: it is valid until it is revoked'),
    used_at: timestamp.optional().describe('to the minute; absent: never'),
    old_secret_expires_at: timestamp
      .optional()
      .describe('until then the secret before the last rotation is valid, too'),
    is_own: z.boolean().describe('the key of this request'),
  })
  .openapi('Key');
export type KeyResource = z.output<typeof key>;

export const keyList = z.strictObject({ keys: z.array(key) }).openapi('KeyList');
export const createdKey = key
  .extend({ key: z.string().describe('what the client sends in `X-API-Key`; shown only once') })
  .openapi('CreatedKey');

export const createKey = z
  .strictObject({
    label,
    scopes: z.array(z.enum(scopes)).min(1).max(scopes.length).describe('of those of the key of the request'),
    kits: kits.optional().describe('of those of the key of the request; left out: all of them'),
    expires_at: zonedTime
      .optional()
      .describe('not after the end of the key of the request; left out: with that'),
  })
  .openapi('CreateKey');

export const changeKey = z
  .strictObject({
    label: label.optional(),
    scopes: createKey.shape.scopes.optional(),
    kits: kits.optional().describe('of those of the key of the request'),
    expires_at: zonedTime
      .nullable()
      .optional()
      .describe('not after the end of the key of the request; null: no end, or that end'),
  })
  .openapi('ChangeKey');
