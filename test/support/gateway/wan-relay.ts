/** What the lab and its relay process say to each other: one JSON object a line. */
import { z } from 'zod';

const end = z.strictObject({ namespace: z.string(), device: z.string() });

/** A wire between two namespaces: a virtual Ethernet device at each end, and the relay between them. */
export const relayWire = z.strictObject({ name: z.string(), near: end, far: end });
export type RelayWire = z.output<typeof relayWire>;

export const wireSettings = z.strictObject({
  /** Added to the round trip, half of it each way, milliseconds. */
  rtt_ms: z.number().default(0),
  /** The way out varies by up to so much in each direction. */
  jitter_ms: z.number().default(0),
  /** Of the frames on the way out: exactly one, at a random place, in each run of 100 / loss_pct frames. */
  loss_pct: z.number().default(0),
  /** Each way; 0: unlimited. */
  rate_kbit: z.number().default(0),
  /** A rate limit queues for so long before it drops, one queue for all as modems have. */
  queue_ms_max: z.number().default(500),
  /** The largest packet that passes, each way; larger ones are lost without a word. 0: every one passes. */
  mtu_bytes: z.number().default(0),
  /** Takes every frame and forwards none; the carrier stays. */
  blackhole: z.boolean().default(false),
});
export type WireSettings = z.output<typeof wireSettings>;

export const relayOrder = z.discriminatedUnion('order', [
  z.strictObject({ order: z.literal('set'), wire: z.string(), settings: wireSettings }),
  z.strictObject({ order: z.literal('carrier'), wire: z.string(), on: z.boolean() }),
  /** The near device vanishes. */
  z.strictObject({ order: z.literal('unplug'), wire: z.string() }),
  /** It comes back as a new device of the same name. */
  z.strictObject({ order: z.literal('plug'), wire: z.string() }),
]);
export type RelayOrder = z.output<typeof relayOrder>;

export const relayAnswer = z.strictObject({ error: z.string().nullable() });
