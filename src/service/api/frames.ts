/** The frames of the WebSocket of a kit, `GET /api/kits/{kit_id}/ws`: one JSON object a frame. */
import { z } from '@hono/zod-openapi';
import { json } from '../../contract/json.ts';
import { asset, commandListResource, kitTelemetrySnapshot, queue, task } from './resources.ts';

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
  }),
  z.strictObject({ type: z.literal('kit'), ...stamp, kit: kitNow }),
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
