/** Assets and their commands, as the connector announces them on `asset/{asset_id}` and `asset/{asset_id}/commands`. */
import { z } from 'zod';
import { jsonObject } from './json.ts';

export const assetType = z.enum(['camera', 'drone', 'radio', 'sensor', 'vehicle', 'gateway']);
export type AssetType = z.output<typeof assetType>;

/**
 * How the asset is spoken to. `gateway` is this contract's addition: the kit's own gateway is an asset too, so that its
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

/** What the connector knows of an asset. Retained; an empty payload on the topic means that the asset is gone. */
export const announcement = z.strictObject({
  id: z.uuid().describe('UUIDv5 of asset_key in the namespace kit_id'),
  asset_key: z.string().min(1).describe('from a hardware identity; never an address that may change'),
  name: z.string(),
  type: assetType,
  vendor: z.string().nullable(),
  model: z.string().nullable(),
  firmware: z.string().nullable(),
  protocol,
  status: assetStatus,
  status_reason: z.string().nullable().describe('why it is offline, for the technician'),
  last_seen_at: z.iso.datetime(),
  parent_id: z.uuid().nullable(),
  lat: latitude.nullable(),
  lon: longitude.nullable(),
  alt_m: altitude_m.nullable(),
  whep_url: z.string().nullable().describe('never holds credentials'),
  feeds: z.array(z.string()).describe('names of the feeds it may publish, also on event topics'),
  driver: z.string().describe('configured name of the driver instance that serves it'),
});
export type Announcement = z.output<typeof announcement>;

export const commandDefinition = z.strictObject({
  id: z.uuid().describe('UUIDv5 of name in the namespace asset_id'),
  name: z.string().min(1),
  description: z.string(),
  risk_level: riskLevel,
  requires_approval: z.boolean(),
  input_schema: jsonObject.describe('JSON Schema draft-07 of the payload; {} when there is none'),
});
export type CommandDefinition = z.output<typeof commandDefinition>;

/** The enabled commands of an asset. Retained; an empty payload on the topic means that the asset is gone. */
export const commandList = z.strictObject({
  revision: z.int().positive().describe('rises with each change of the list'),
  commands: z.array(commandDefinition),
});
export type CommandList = z.output<typeof commandList>;
