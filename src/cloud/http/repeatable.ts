/** `Idempotency-Key`: a repeated request with the same key is carried out once. */
import type { Context } from 'hono';
import { z } from 'zod';
import { json, type Json } from '../../contract/json.ts';
import { RequestProblem } from '../api/problem.ts';
import type { RepeatableRequest } from '../stored/stored.ts';
import type { Env } from './context.ts';
import { texts } from '../texts.ts';
import type { Store } from '../store/sql-store.ts';
import { hashOf } from '../hash.ts';

export type AnswerStore = Pick<Store, 'claim' | 'answer' | 'unclaim'>;

export const idempotencyHeaders = z.object({
  'idempotency-key': z
    .string()
    .min(1)
    .max(128)
    .optional()
    .describe('a repeated request with the same key is answered as the first one, for 24 h'),
});

/**
 * Runs `work`, or returns the stored answer of the first request with this key. Throws `conflict` when the first request
 * is in progress or was interrupted with an unknown outcome, and `invalid-payload` when it was a different request.
 */
export async function once<T extends z.ZodType>(
  c: Context<Env>,
  { store, schema, body }: { readonly store: AnswerStore; readonly schema: T; readonly body: Json },
  work: () => Promise<z.output<T>>,
): Promise<z.output<T>> {
  const idempotency_key = c.req.header('idempotency-key');
  if (idempotency_key === undefined) return work();
  const request: RepeatableRequest = {
    key_id: c.var.principal.key_id,
    idempotency_key,
    request: hashOf(`${c.req.method} ${c.req.path} ${JSON.stringify(body)}`),
  };
  const claim = await store.claim(request, Date.now());
  if (claim.kind === 'known') {
    if (claim.request !== request.request) {
      throw new RequestProblem('invalid-payload', texts.key_used);
    }
    if (claim.answer === null) {
      throw new RequestProblem('conflict', texts.first_in_progress);
    }
    return schema.parse(claim.answer);
  }
  try {
    const answer = await work();
    await store.answer(request, toJson(answer));
    return answer;
  } catch (error) {
    // A rejected request had no effect. After any other error the outcome is unknown: the key stays in use.
    if (error instanceof RequestProblem) await store.unclaim(request);
    throw error;
  }
}

/** The value without the keys that are undefined. */
export function toJson(value: unknown): Json {
  return json.parse(JSON.parse(JSON.stringify(value)));
}
