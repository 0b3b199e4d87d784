/** Responses that clients have not taken yet: the service holds all of each, up to megabytes, so that a key has a few of them. */
import type { MiddlewareHandler } from 'hono';
import { RequestProblem } from '../../api/problem.ts';
import { KeyedSlots, type SlotLimits } from '../../slots.ts';
import { texts } from '../../texts.ts';
import type { Env } from '../context.ts';

/** Of one key, over all of its connections, those in progress included. */
export const untaken_max = 16;
const wait_max_ms = 10_000;
/** As many as the connections of one address, and those behind them. */
const waiting_max = 256;
const retry_s = 2;

/** Streams, which hold little and have other limits, and requests that wait for a kit. */
const others = /\/(?:snapshot\.jpg|cancel|export|archive\.pmtiles)\/?$/u;

const limits: SlotLimits = {
  count: untaken_max,
  wait_max_ms,
  waiting_max,
  refusal: () =>
    new RequestProblem('too-many-requests', texts.untaken(untaken_max), { retry_after_s: retry_s }),
};

/** Comes after authentication. A client that reads what it asks for notices nothing. */
export function limitUntaken(): MiddlewareHandler<Env> {
  const byKey = new KeyedSlots(limits);
  return async (c, next) => {
    const key_id = (c.var.principal as Env['Variables']['principal'] | undefined)?.key_id;
    const { outgoing } = c.env;
    if (key_id === undefined || !outgoing || others.test(c.req.path)) return next();
    const leave = await byKey.take(key_id);
    // It may have hung up while it waited.
    if (outgoing.closed) leave();
    else outgoing.once('close', leave);
    return next();
  };
}
