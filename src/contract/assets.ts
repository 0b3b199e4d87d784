/** Assets and their commands, as the connector announces them on `asset/{asset_id}` and `asset/{asset_id}/commands`. */
import { z } from 'zod';
import { jsonObject } from './json.ts';
import {
  command_chars_max,
  commands_max,
  feed_chars_max,
  feeds_max,
  key_chars_max,
  name_chars_max,
  sentence_chars_max,
  time_chars_max,
  url_chars_max,
} from './limits.ts';

export const assetType = z.enum(['camera', 'drone', 'radio', 'sensor', 'vehicle', 'gateway']);
export type AssetType = z.output<typeof assetType>;

/**
 * The protocol of the asset. `gateway` is this contract's addition: the kit's own gateway is an asset too, so that its
 * commands and the edges of its links have a place, and none of the interface's protocols is true of it.
 */
export const protocol = z.enum(['vendorcam', 'onvif', 'mavlink', 'vendorradio', 'partner', 'gateway']);
export type Protocol = z.output<typeof protocol>;

export const riskLevel = z.enum(['low', 'medium', 'high']);
export type RiskLevel = z.output<typeof riskLevel>;

export const assetStatus = z.enum(['online', 'offline']);
export type AssetStatus = z.output<typeof assetStatus>;

export const latitude = z.number().min(-90).max(90).describe('degrees, WGS-84');
export const longitude = z.number().min(-180).max(180).describe('degrees, WGS-84');
export const altitude_m = z.number().describe('metres above the WGS-84 ellipsoid');

const itemHealth = z.strictObject({
  state: z
    .enum(['works', 'not_offered', 'fails'])
    .describe('not_offered: the device does not have it, or the configuration of the kit switches it off'),
  reason: z
    .string()
    .max(sentence_chars_max)
    .nullable()
    .describe(
      'in the words of the device where it gave some, with the remedy where it is known; of `works`: what is not proven yet',
    ),
  next_try_at: z.iso
    .datetime()
    .max(time_chars_max)
    .nullable()
    .describe('of `fails`: the next try; null: within a minute, tried all the time, or none is planned'),
});

/**
 * What an asset delivers while it is online. A driver reports what it knows: what it leaves out is unknown. Nothing is
 * concluded from silence: a camera that sees nothing sends no event.
 */
export const assetHealth = z.strictObject({
  state: itemHealth.optional().describe('what it reports of itself, such as the stations of a radio'),
  events: itemHealth.optional(),
  stream: itemHealth
    .optional()
    .describe(
      'the media server of the kit has it and the camera takes connections for it; the picture is fetched for viewers alone',
    ),
  still: itemHealth
    .optional()
    .describe('pictures; fails after two in a row that were asked for and did not come'),
  commands: itemHealth.optional(),
});
export type AssetHealth = z.output<typeof assetHealth>;
export type HealthItem = keyof AssetHealth;
export const health_items = assetHealth.keyof().options;

/** What the connector knows of an asset. Retained; an empty payload on the topic means that the asset is gone. */
export const announcement = z.strictObject({
  id: z.uuid().describe('UUIDv5 of asset_key in the namespace kit_id'),
  asset_key: z
    .string()
    .min(1)
    .max(key_chars_max)
    .describe('from a hardware identity; never an address that may change'),
  name: z.string().max(name_chars_max),
  type: assetType,
  vendor: z.string().max(name_chars_max).nullable(),
  model: z.string().max(name_chars_max).nullable(),
  firmware: z.string().max(name_chars_max).nullable(),
  protocol,
  status: assetStatus,
  status_reason: z
    .string()
    .max(sentence_chars_max)
    .nullable()
    .describe('why it is offline, for the technician'),
  health: assetHealth
    .optional()
    .describe('whether it delivers what it should; absent while it is offline and before contract 1.2'),
  last_seen_at: z.iso.datetime().max(time_chars_max),
  first_seen_at: z.iso.datetime().max(time_chars_max).optional().describe('absent before contract 1.1'),
  parent_id: z.uuid().nullable(),
  lat: latitude.nullable(),
  lon: longitude.nullable(),
  alt_m: altitude_m.nullable(),
  whep_url: z.string().max(url_chars_max).nullable().describe('never holds credentials'),
  feeds: z
    .array(z.string().max(feed_chars_max))
    .max(feeds_max)
    .describe('names of the feeds it may publish, also on event topics'),
  driver: z.string().max(name_chars_max).describe('configured name of the driver instance that serves it'),
});
export type Announcement = z.output<typeof announcement>;

export const commandDefinition = z.strictObject({
  id: z.uuid().describe('UUIDv5 of name in the namespace asset_id'),
  name: z.string().min(1).max(command_chars_max),
  description: z.string().max(sentence_chars_max),
  risk_level: riskLevel,
  requires_approval: z.boolean(),
  input_schema: jsonObject.describe('JSON Schema draft-07 of the payload; {} when there is none'),
  timeout_ms: z
    .int()
    .positive()
    .optional()
    .describe(
      'deadline after `created_at` of a dispatch that names none, longer for a payload that waits for an arrival; absent before contract 1.2',
    ),
});
export type CommandDefinition = z.output<typeof commandDefinition>;

/** The enabled commands of an asset. Retained; an empty payload on the topic means that the asset is gone. */
export const commandList = z.strictObject({
  revision: z.int().positive().describe('rises with each change of the list'),
  commands: z.array(commandDefinition).max(commands_max),
});
export type CommandList = z.output<typeof commandList>;

/** Assets of one roster; a connector has at most 768. */
const roster_max = 1_024;

/** On `roster`, retained: all assets of the kit. What has an older number and is not named is gone. */
export const roster = z.strictObject({ assets: z.array(z.uuid()).max(roster_max) });
export type Roster = z.output<typeof roster>;
