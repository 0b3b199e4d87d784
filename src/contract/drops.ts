/** Content of `drops`: messages that were dropped before delivery, so that a gap is never mistaken for a loss in transit. */
import { z } from 'zod';
import { drop_reasons } from './drop-reasons.ts';
import { lanes } from './lanes.ts';

export const dropReason = z.enum(drop_reasons);

const drop = z.strictObject({
  epoch: z.int().positive(),
  lane: z.enum(lanes),
  reason: dropReason,
  rows: z.int().positive().describe('how many'),
  lo: z.int().nonnegative().describe('the dropped sequence numbers lie between lo and hi, both included'),
  hi: z.int().nonnegative(),
});

/** Drops of one message. */
export const drops_max = 1_000;

export const dropReport = z.strictObject({ drops: z.array(drop).min(1).max(drops_max) });
export type DropReport = z.output<typeof dropReport>;
