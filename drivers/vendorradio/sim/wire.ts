/** The shapes of ubus over JSON-RPC, as uhttpd answers them. */
import { z } from 'zod';

/** Status first, then the body where there is one. */
export type SimResult = readonly unknown[];
export type SimReply = { readonly result: unknown } | { readonly error: SimError };
export interface SimError {
  readonly code: number;
  readonly message: string;
}

/** Arguments of a call. */
export type Args = Readonly<Record<string, unknown>>;

/** All of them come with HTTP status 200. */
export const sim_errors = {
  parse: { code: -32_700, message: 'Parse error' },
  no_object: { code: -32_000, message: 'Object not found' },
  denied: { code: -32_002, message: 'Access denied' },
  timeout: { code: -32_003, message: 'ubus request timed out' },
} as const;

export const no_session = '0'.repeat(32);

export const simRequest = z.looseObject({
  id: z.unknown(),
  method: z.string(),
  params: z.array(z.unknown()).optional(),
});
export type SimRequest = z.output<typeof simRequest>;

/** Session, object, method, arguments: with fewer of them a call is no call. */
export const callParams = z
  .tuple([z.string(), z.string(), z.string(), z.record(z.string(), z.unknown())])
  .rest(z.unknown());
