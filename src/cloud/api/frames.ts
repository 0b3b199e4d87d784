/** The frames of the WebSockets: one JSON object a frame. `GET /api/kits/{kit_id}/ws` is for one kit, `GET /api/ws` for many. */
import { z } from '@hono/zod-openapi';
import { json } from '../../contract/json.ts';
import { alarm } from './alarm-resources.ts';
import { fileResource } from './file-resources.ts';
import { asset, commandListResource, kit, kitTelemetrySnapshot, queue, task } from './resources.ts';

/** Assets in one subscription. */
export const subscribed_assets_max = 256;

/**
 * Client to server. `auth` must come within 5 s where neither the `X-API-Key` header nor a session cookie came with the
 * handshake. A new `subscribe` replaces the one before and is answered with a new snapshot.
 */
export const clientFrame = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('auth'), api_key: z.string().min(1).max(256) }),
  z.strictObject({
    type: z.literal('subscribe'),
    assets: z.union([z.literal('*'), z.array(z.uuid().toLowerCase()).max(subscribed_assets_max)]),
  }),
  z.strictObject({ type: z.literal('ping') }),
]);

const stamp = {
  seq: z
    .int()
    .nonnegative()
    .describe('rises by one with each frame to this socket; after a gap, `subscribe` again'),
  time: z.iso.datetime().describe("the server's clock"),
};

/** A feed message with the time of its observation, from which its age is computed. */
const feedMessage = z.strictObject({ time: z.iso.datetime(), data: json });

/** An asset with what the list leaves out. */
const liveAsset = asset.extend({
  alt_m: z.number().nullable(),
  status_reason: z.string().nullable(),
  /** Names of the feeds it may publish. */
  feed_names: z.array(z.string()),
});

const kitNow = kitTelemetrySnapshot.extend({
  last_seen: z.iso.datetime().nullable(),
  /** When each part of the telemetry was observed. */
  times: z.record(z.string(), z.iso.datetime()),
});

/** Server to client: a snapshot first, what it had no room for (beyond 1 MB), then what changes. Slow readers get the newest of each thing, never a queue. */
export const serverFrame = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('snapshot'),
    ...stamp,
    kit: kitNow,
    queue,
    assets: z.array(liveAsset),
    feeds: z.record(z.uuid(), z.record(z.string(), feedMessage)).describe('by asset and feed'),
    commands: z.record(z.uuid(), commandListResource.shape.commands),
    tasks: z.array(task).describe('the newest 50'),
    alarms: z.array(alarm).describe('the newest 50 that are not closed'),
  }),
  z.strictObject({ type: z.literal('kit'), ...stamp, kit: kitNow }),
  z.strictObject({ type: z.literal('kit_gone'), ...stamp }).describe('it was removed; nothing follows'),
  z.strictObject({ type: z.literal('queue'), ...stamp, queue }),
  z.strictObject({ type: z.literal('asset'), ...stamp, asset: liveAsset }),
  z.strictObject({ type: z.literal('asset_gone'), ...stamp, asset_id: z.uuid() }),
  z.strictObject({
    type: z.literal('commands'),
    ...stamp,
    asset_id: z.uuid(),
    commands: commandListResource.shape.commands,
  }),
  z.strictObject({
    type: z.literal('feed'),
    ...stamp,
    asset_id: z.uuid(),
    feed: z.string(),
    message: feedMessage,
  }),
  z.strictObject({ type: z.literal('task'), ...stamp, task }),
  z.strictObject({ type: z.literal('alarm'), ...stamp, alarm }).describe('opened, changed or closed'),
  z
    .strictObject({ type: z.literal('file'), ...stamp, file: fileResource })
    .describe(
      'announced by the kit, ordered, uploaded, given up or deleted; none of them is in the snapshot',
    ),
  z.strictObject({ type: z.literal('heartbeat'), ...stamp }).describe('every 5 s, also when nothing changes'),
]);
export type ServerFrame = z.output<typeof serverFrame>;

/** Close codes beside those of RFC 6455. */
export const closeCodes = {
  bad_frame: 4400,
  unauthorised: 4401,
  forbidden: 4403,
  silent: 4408,
  too_fast: 4429,
} as const;

/** Kits in one frame of summaries. */
export const summaries_at_once = 100;
/** Kits that one subscription may name at all; the configuration allows fewer of them. */
const kits_named_max = 1_024;

const [auth, , ping] = clientFrame.options;

/**
 * Client to server. `auth` must come within 5 s where the handshake had no key. A new `subscribe` replaces the one before.
 */
export const fleetClientFrame = z.discriminatedUnion('type', [
  auth,
  z.strictObject({
    type: z.literal('subscribe'),
    summaries: z
      .boolean()
      .default(false)
      .describe('the entries of List kits for all kits of the key, and then the changed ones'),
    alarms: z
      .boolean()
      .default(false)
      .describe('the alarms of all kits of the key that are not closed, and then those that change'),
    kits: z
      .array(z.uuid().toLowerCase())
      .max(kits_named_max)
      .default([])
      .describe('kits whose every change is sent, as on their own sockets; bounded by the configuration'),
    assets: z
      .union([z.literal('*'), z.array(z.uuid().toLowerCase()).max(subscribed_assets_max)])
      .default('*')
      .describe('assets of these kits'),
  }),
  ping,
]);

const summaries = z.strictObject({
  type: z.literal('summaries'),
  ...stamp,
  kits: z.array(kit).max(summaries_at_once).describe('each replaces the entry with its id'),
  left: z.int().nonnegative().describe('entries of the first list that are still to come; then 0'),
  gone: z.array(z.uuid()).optional().describe('kits that were removed; absent: none'),
});

const alarms = z.strictObject({
  type: z.literal('alarms'),
  ...stamp,
  alarms: z.array(alarm).max(summaries_at_once).describe('each replaces the one with its id'),
  first: z.boolean().describe('the list begins: forget those of before'),
  more: z.boolean().describe('others of the list follow'),
});

const of_kit = { kit_id: z.uuid() };
const [snapshot, ofKit, kitGone, ofQueue, ofAsset, gone, commands, feed, ofTask, ofAlarm, ofFile, heartbeat] =
  serverFrame.options;

/** Server to client: the frames of a kit's own socket with its `kit_id`, and summaries of all kits, at most one frame a second. */
export const fleetServerFrame = z.discriminatedUnion('type', [
  summaries,
  alarms,
  snapshot.extend(of_kit),
  ofKit.extend(of_kit),
  kitGone.extend(of_kit),
  ofQueue.extend(of_kit),
  ofAsset.extend(of_kit),
  gone.extend(of_kit),
  commands.extend(of_kit),
  feed.extend(of_kit),
  ofTask.extend(of_kit),
  ofAlarm.extend(of_kit),
  ofFile.extend(of_kit),
  heartbeat,
]);
export type FleetServerFrame = z.output<typeof fleetServerFrame>;
