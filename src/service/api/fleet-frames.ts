/** The frames of the WebSocket for many kits, `GET /api/ws`: one JSON object a frame. */
import { z } from '@hono/zod-openapi';
import { clientFrame, serverFrame, subscribed_assets_max } from './frames.ts';
import { kit } from './resources.ts';

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

const stamp = serverFrame.options[8].shape;

const summaries = z.strictObject({
  type: z.literal('summaries'),
  seq: stamp.seq,
  time: stamp.time,
  kits: z.array(kit).max(summaries_at_once).describe('each replaces the entry with its id'),
  left: z.int().nonnegative().describe('entries of the first list that are still to come; then 0'),
});

const of_kit = { kit_id: z.uuid() };
const [snapshot, kitNow, queue, asset, gone, commands, feed, task, heartbeat] = serverFrame.options;

/** Server to client: the frames of a kit's own socket with its `kit_id`, and summaries of all kits, at most one frame a second. */
export const fleetServerFrame = z.discriminatedUnion('type', [
  summaries,
  snapshot.extend(of_kit),
  kitNow.extend(of_kit),
  queue.extend(of_kit),
  asset.extend(of_kit),
  gone.extend(of_kit),
  commands.extend(of_kit),
  feed.extend(of_kit),
  task.extend(of_kit),
  heartbeat,
]);
export type FleetServerFrame = z.output<typeof fleetServerFrame>;
