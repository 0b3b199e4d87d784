/** JSON values as the wire carries them. */
import { z } from 'zod';

export type Json = string | number | boolean | null | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

/** Of a key of an open object. */
const json_key_chars_max = 512;

/** Any JSON value. Nothing is checked: what `JSON.parse` gave cannot be anything else. */
export const json: z.ZodType<Json, Json> = z.any();
export const jsonObject: z.ZodType<JsonObject, JsonObject> = z.record(
  z.string().max(json_key_chars_max),
  json,
);
