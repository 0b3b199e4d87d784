/**
 * What stands on `state`, retained, so that anybody sees at once whether the kit is connected.
 * The state message stands outside the buffer and its sequence: the `seq` of its envelope counts the connections of the
 * epoch, 2n-1 for the birth of the n-th and 2n for its will or clean stop, so that a late will never beats a newer birth.
 */
import { z } from 'zod';

/** `reason` of the will, which the broker publishes when the connection is lost. */
export const connection_lost = 'connection lost';

export const kitState = z.strictObject({
  online: z.boolean(),
  epoch: z.int().positive(),
  boot: z.string().describe('boot id of the gateway: changes when it boots'),
  started_at: z.iso.datetime().describe('when the connector started'),
  software: z.string().describe('name and version of the connector'),
  contract: z
    .string()
    .regex(/^\d+\.\d+$/u)
    .describe('major.minor of this contract'),
  outbox: z
    .strictObject({
      rows: z.int().nonnegative(),
      bytes: z.int().nonnegative(),
      oldest: z.iso.datetime().nullable(),
    })
    .describe('what waited to be sent at that moment'),
  degraded: z
    .array(z.string())
    .describe('what is wrong with the kit itself, a sentence each; empty: nothing'),
  reason: z.string().nullable().describe('why it is offline; null while online'),
});
export type KitState = z.output<typeof kitState>;

/** `seq` of the n-th connection's birth, n from 1. */
export function birthSeq(connection: number): number {
  return 2 * connection - 1;
}

/** `seq` of the n-th connection's will or clean stop, n from 1. */
export function deathSeq(connection: number): number {
  return 2 * connection;
}
