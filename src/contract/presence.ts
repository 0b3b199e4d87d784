/**
 * What stands on `state`, retained, so that anybody sees at once whether the kit is connected.
 * The state message stands outside the buffer and its sequence: the `seq` of its envelope counts the connections of the
 * epoch in steps of 10,000,000, so that a late will never counts more than the next birth, and so that the state of a
 * connection that lasts can be published again whenever it changes.
 */
import { z } from 'zod';
import { degraded_max, name_chars_max, sentence_chars_max, time_chars_max } from './limits.ts';

/** `reason` of the will, which the broker publishes when the connection is lost: only a will has it. */
export const connection_lost = 'connection lost';

export const kitState = z.strictObject({
  online: z.boolean(),
  name: z
    .string()
    .max(name_chars_max)
    .nullish()
    .describe('the name of the kit, for people; null: none configured; absent before contract 1.2'),
  partners: z
    .boolean()
    .optional()
    .describe('its own service keeps partner assets and takes `down/partner`; absent before contract 1.2'),
  epoch: z.int().positive(),
  boot: z.string().max(name_chars_max).describe('boot id of the gateway: changes when it boots'),
  started_at: z.iso.datetime().max(time_chars_max).describe('when the connector started'),
  software: z.string().max(name_chars_max).describe('name and version of the connector'),
  contract: z
    .string()
    .max(name_chars_max)
    .regex(/^\d+\.\d+$/u)
    .describe('major.minor of this contract'),
  outbox: z
    .strictObject({
      rows: z.int().nonnegative(),
      bytes: z.int().nonnegative(),
      oldest: z.iso.datetime().max(time_chars_max).nullable(),
    })
    .describe('what waited to be sent at that moment'),
  degraded: z
    .array(z.string().max(sentence_chars_max))
    .max(degraded_max)
    .describe('what is wrong with the kit itself, a sentence each; empty: nothing'),
  reason: z.string().max(sentence_chars_max).nullable().describe('why it is offline; null while online'),
});
export type KitState = z.output<typeof kitState>;

/** Numbers that each connection has for its states; one every ten seconds would last three years. */
const states_per_connection = 10_000_000;

/** `seq` of the m-th state of the n-th connection, both from 1; the first one is its birth. The last number repeats. */
export function stateSeq(connection: number, state: number): number {
  return (connection - 1) * states_per_connection + Math.min(state, states_per_connection - 1);
}

/** `seq` of the n-th connection's will or clean stop, n from 1. */
export function deathSeq(connection: number): number {
  return connection * states_per_connection;
}

/** Whether `seq` is a state of the connection whose will or clean stop has `death`, both of one epoch. */
export function isOfConnection(seq: number, death: number): boolean {
  return seq < death && death - seq < states_per_connection;
}
