/** The summary of a kit for lists of kits: what a person looks at first. */
import { z } from '@hono/zod-openapi';
import { linkType } from '../../contract/kit.ts';

const attention = z
  .strictObject({
    key: z
      .enum([
        'offline',
        'never',
        'degraded',
        'battery',
        'fix',
        'link',
        'asset',
        'queue',
        'dropped',
        'refused',
      ])
      .describe('what needs a person; keys may be added'),
    level: z.enum(['bad', 'warn']),
    subject: z.string().optional().describe('name of the link, id of the asset, or the degraded condition'),
    value: z.number().optional().describe('percent of the battery, or a number of messages'),
  })
  .openapi('Attention');
export type Attention = z.output<typeof attention>;

export const kitSummary = z
  .strictObject({
    link: z
      .strictObject({ name: z.string(), type: linkType.optional() })
      .optional()
      .describe('the WAN link in use; absent: none is online, or not known'),
    latency_ms: z.number().nonnegative().optional().describe('of the link in use, milliseconds'),
    battery: z.number().min(0).max(100).nullable().describe('percent; null: no sensor, or not known'),
    battery_charging: z.boolean().nullable(),
    waiting: z
      .int()
      .nonnegative()
      .nullable()
      .describe('messages buffered on the kit, as it last reported; null: not known'),
    assets: z.strictObject({ online: z.int().nonnegative(), total: z.int().nonnegative() }),
    attention: z.array(attention).describe('what needs a person, the gravest first'),
  })
  .openapi('KitSummary');
export type KitSummary = z.output<typeof kitSummary>;
