/** The turns of requests: a key may send hundreds at once, and none of them may delay those of others. */
import type { MiddlewareHandler } from 'hono';
import { KeyTurns } from '../access/key-turns.ts';
import type { Env } from './context.ts';

/** Requests of one key that are worked on at a time; the others wait with their bodies unread. */
const requests_at_once = 4;

/** Requests that wait for a kit or have other limits: they start in turn, and do not count while they run. */
const waiting = /\/(?:snapshot\.jpg|cancel|history|events|series|track|completeness|export)\/?$/u;

/** Comes after authentication. */
export function inTurn(): MiddlewareHandler<Env> {
  const turns = new KeyTurns(requests_at_once);
  return async (c, next) => {
    const key_id = (c.var.principal as Env['Variables']['principal'] | undefined)?.key_id;
    if (key_id === undefined) return next();
    if (!waiting.test(c.req.path)) return turns.take(key_id, next);
    await turns.take(key_id, async () => undefined);
    return next();
  };
}
