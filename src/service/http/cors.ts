/** Lets pages of configured origins use the API with a key (Fetch standard, CORS). Cookies are never accepted from them. */
import type { MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import type { Gate } from '../access/gate.ts';
import type { Env } from './context.ts';

/** How long browsers may keep the answer to a preflight request. */
const preflight_s = 600;

/** Answers preflight requests and adds the headers of CORS. Without configured origins it does nothing. */
export function crossOrigin({ gate }: { readonly gate: Gate }): MiddlewareHandler<Env> {
  const { origins } = gate;
  if (origins.length === 0) return async (_, next) => next();
  return cors({
    origin: [...origins],
    allowMethods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    allowHeaders: ['X-API-Key', 'Content-Type', 'Idempotency-Key', 'If-None-Match', 'Range', 'If-Range'],
    exposeHeaders: ['Location', 'Retry-After', 'ETag', 'Link', 'Content-Range', 'Accept-Ranges'],
    maxAge: preflight_s,
  });
}
