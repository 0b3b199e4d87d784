/** The resources of the Kit, Asset and Telemetry Service, as its clients read them. */
import { z } from '@hono/zod-openapi';
import {
  assetHealth,
  assetStatus,
  commandDefinition,
  latitude,
  longitude,
  riskLevel,
} from '../../contract/assets.ts';
import { jsonObject } from '../../contract/json.ts';
import { taskStatus } from '../../contract/tasks.ts';
import {
  clientResource,
  gatewayResource,
  linkResource,
  locationResource,
  speedtestResource,
  wanResource,
} from './kit-resources.ts';
import { kitSummary } from './summary.ts';

const timestamp = z.iso.datetime();

/** Null: no sensor, or not known. */
const batteryPercent = z.number().min(0).max(100).nullable();

const kitLive = z.strictObject({
  location: locationResource.optional(),
  wans: z.array(wanResource),
  battery: batteryPercent,
  battery_charging: z.boolean().nullable(),
  gateway: gatewayResource.optional(),
});

export const kit = z
  .strictObject({
    id: z.uuid(),
    name: z.string(),
    tags: z.array(z.string()).optional().describe('words by which operators group kits; absent: none'),
    time_zone: z.string().optional().describe('IANA name that operators set; absent: none'),
    online: z.boolean().describe('whether the kit has reported in recently'),
    last_seen: timestamp.optional().describe('most recent check-in; absent: never'),
    // Without a name: converters to OpenAPI 3.0, and generators behind them, know no union of a named schema and null.
    live: kitLive.nullable().describe('null: the kit never reported telemetry'),
    summary: kitSummary,
  })
  .openapi('Kit');
export type KitResource = z.output<typeof kit>;

export const kitTelemetrySnapshot = z
  .strictObject({
    online: z.boolean(),
    kit_id: z.uuid(),
    kit_name: z.string(),
    location: locationResource.optional(),
    battery: batteryPercent,
    battery_charging: z.boolean().nullable(),
    gateway: gatewayResource.optional(),
    wans: z.array(wanResource),
    clients: z.array(clientResource),
    speedtest: speedtestResource.optional(),
  })
  .openapi('KitTelemetry');
export type KitTelemetrySnapshot = z.output<typeof kitTelemetrySnapshot>;

export const kitList = z.array(kit).openapi('KitList');
export const battery = kitTelemetrySnapshot
  .pick({ battery: true, battery_charging: true })
  .openapi('Battery');
export const clientList = z.strictObject({ clients: z.array(clientResource) }).openapi('ClientList');
export const linkList = z.strictObject({ links: z.array(linkResource) }).openapi('LinkList');

const lossFields = {
  time: timestamp.describe('when the service learned of the newest one'),
  since: timestamp.describe('since when they are counted: the first one after a day without any'),
  reason: z.string(),
  count: z.int().positive(),
};

/** The backlog of the kit, from its last birth or report, and what this service has received from it. */
export const queue = z
  .strictObject({
    online: z.boolean(),
    since: timestamp.nullable().describe('since when it is online or offline'),
    reason: z.string().nullable().describe('why it is offline'),
    software: z.string().nullable(),
    as_of: timestamp
      .nullable()
      .describe('when the kit reported the fields up to `oldest`: with its birth and with each state report'),
    waiting_rows: z.int().nonnegative().nullable().describe('messages buffered on the kit'),
    waiting_bytes: z.int().nonnegative().nullable(),
    oldest: timestamp.nullable().describe('observation time of the oldest buffered message'),
    received: z.int().nonnegative().describe('different messages of the kit that this service has stored'),
    duplicates: z.int().nonnegative(),
    missing: z.int().nonnegative().describe('sequence numbers not seen and not reported as dropped'),
    dropped: z
      .int()
      .nonnegative()
      .describe('messages that the kit reported as dropped; superseded values are not counted'),
    refused: z.int().nonnegative().describe('messages that break the contract'),
    refused_last: z
      .array(z.strictObject({ ...lossFields, channel: z.string().describe('topic below `k1/{kit_id}/up/`') }))
      .describe('why messages were refused, newest first: one entry for each kind, with the newest example'),
    dropped_last: z
      .array(z.strictObject({ ...lossFields, lane: z.string() }))
      .describe('why the kit dropped messages, newest first: one entry for each kind'),
    degraded: z.array(z.string()).describe('degraded conditions as the kit reports them'),
  })
  .openapi('Queue');
export type QueueResource = z.output<typeof queue>;

/** The protocols that the interface has. The contract has more, and later minor versions may add others. */
export const interfaceProtocol = z.enum(['vendorcam', 'onvif', 'mavlink', 'vendorradio', 'partner']);

export const asset = z
  .strictObject({
    id: z.uuid(),
    asset_key: z.string(),
    name: z.string(),
    type: z.string().describe('camera, drone, radio, sensor, vehicle, gateway, or a custom one of a partner'),
    vendor: z.string().nullable(),
    model: z.string().nullable(),
    protocol: interfaceProtocol.describe(
      'how the connector reaches it; another one than these is shown as that of its type (decision 0031)',
    ),
    status: assetStatus,
    last_seen_at: timestamp,
    parent_id: z.uuid().nullable(),
    lat: latitude.nullable(),
    lon: longitude.nullable(),
    whep_url: z.string().nullable(),
    health: assetHealth
      .optional()
      .describe('what it delivers while it is online; absent where the kit does not report it'),
  })
  .openapi('Asset');
export type AssetResource = z.output<typeof asset>;

/** As Get Asset has it. */
export const assetDetails = z
  .strictObject({
    ...asset.shape,
    metadata: jsonObject.optional().describe('of partner assets only: what the partner gave'),
  })
  .openapi('AssetDetails');
export type AssetDetails = z.output<typeof assetDetails>;

export const assetList = z.strictObject({ assets: z.array(asset) }).openapi('AssetList');

export const createdAsset = z
  .strictObject({
    id: z.uuid(),
    asset_key: z.string(),
    kit_id: z.uuid(),
    name: z.string(),
    type: z.string(),
    vendor: z.string().nullable(),
    model: z.string().nullable(),
    protocol: z.literal('partner'),
    metadata: jsonObject,
    status: z.literal('online'),
    last_seen_at: timestamp,
    parent_id: z.uuid().nullable(),
  })
  .openapi('CreatedAsset');
export type CreatedAsset = z.output<typeof createdAsset>;

export const command = commandDefinition
  .omit({ timeout_ms: true })
  .extend({ risk_level: riskLevel })
  .openapi('Command');
export type CommandResource = z.output<typeof command>;

export const commandListResource = z.strictObject({ commands: z.array(command) }).openapi('CommandList');

export const task = z
  .strictObject({
    id: z.uuid(),
    asset_id: z.uuid(),
    command_name: z.string(),
    payload: jsonObject.optional().describe('absent where an older kit did not report it'),
    status: taskStatus,
    result: jsonObject.describe('empty until the end; `error` holds the reason of a failure'),
    requested_by: z.uuid().optional().describe('absent for a task of a technician on the gateway'),
    requested_by_name: z
      .string()
      .optional()
      .describe('label of the API key, or name of the user on the gateway; absent where none is known'),
    created_at: timestamp,
    updated_at: timestamp.describe('when the status or the progress last changed'),
    progress: z
      .strictObject({ message: z.string(), pct: z.number().min(0).max(100).optional() })
      .optional()
      .describe('only while running, where the device reports it'),
  })
  .openapi('Task');
export type TaskResource = z.output<typeof task>;

export const taskList = z
  .strictObject({
    tasks: z.array(task),
    next_cursor: z
      .string()
      .optional()
      .describe('send it as `cursor` for the next page; absent: this is the last'),
  })
  .openapi('TaskList');

/** The rights of the key. */
export const session = z
  .strictObject({
    kits: z.array(z.uuid()).describe('kits known to the service'),
    scopes: z.array(z.string()),
  })
  .openapi('Session');

/** By feed name: the most recent message. */
export const assetFeeds = z.record(z.string(), z.looseObject({})).openapi('AssetFeeds');
export type AssetFeeds = z.output<typeof assetFeeds>;

/** RFC 9457. `errors` follows the form of its section 3 example. */
export const problem = z
  .strictObject({
    type: z.string().describe('a stable relative address, such as /problems/invalid-payload'),
    title: z.string(),
    status: z.int(),
    detail: z.string().optional(),
    instance: z.string().describe('id of the request, as in the log'),
    errors: z
      .array(
        z.strictObject({ pointer: z.string().describe('JSON pointer, such as #/lat'), detail: z.string() }),
      )
      .optional(),
  })
  .openapi('Problem');
export type Problem = z.output<typeof problem>;
