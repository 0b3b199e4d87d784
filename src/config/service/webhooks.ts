/** Limits of webhooks in the configuration of the service. Clients register the receivers over the API. */
import { z } from 'zod';
import { isNetwork } from './network.ts';

const network = z
  .string()
  .refine((text) => isNetwork(text), 'write a network as ADDRESS/BITS, such as 10.20.0.0/16 or fd00:1::/64');

export const webhooksSection = z
  .union([
    z.literal('off'),
    z.strictObject({
      allow: z
        .array(network)
        .max(64)
        .default([])
        .describe('private networks that receivers may be in, such as 10.20.0.0/16; none by default'),
      allow_http: z.boolean().default(false).describe('receivers may be reached without TLS'),
      timeout_s: z.number().min(1).max(30).default(10).describe('for one delivery'),
      disable_after_h: z
        .number()
        .min(1)
        .max(720)
        .default(72)
        .describe('a receiver whose deliveries all fail for so long is disabled'),
    }),
  ])
  .prefault({})
  .describe('deliveries of events to registered receivers; off: none can be registered');

/** Undefined: switched off. */
export interface WebhookConfig {
  readonly allow: readonly string[];
  readonly allow_http: boolean;
  readonly timeout_ms: number;
  readonly disable_after_ms: number;
}

/** The section in the units of the code. */
export function webhooksOf(section: z.output<typeof webhooksSection>): WebhookConfig | undefined {
  if (section === 'off') return undefined;
  const { timeout_s, disable_after_h, ...rules } = section;
  return { ...rules, timeout_ms: timeout_s * 1_000, disable_after_ms: disable_after_h * 3_600_000 };
}
