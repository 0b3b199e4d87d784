/** Lets pages of configured origins use the API with a key (Fetch standard, CORS). Cookies are never accepted from them. */
import type { MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import type { Gate } from '../access/gate.ts';
import type { Env } from './context.ts';

/** How long browsers may keep the answer to a preflight request. */
const preflight_s = 600;

/**
 * Answers preflight requests of the configured origins and adds the headers of CORS. Other preflight requests get the methods of
 * the path, as any OPTIONS request, and no such header: browsers then refuse the request of the page.
 */
export function crossOrigin({ gate }: { readonly gate: Gate }): MiddlewareHandler<Env> {
  const { origins } = gate;
  if (origins.length === 0) return async (_, next) => next();
  const allow = cors({
    origin: [...origins],
    allowMethods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    allowHeaders: ['X-API-Key', 'Content-Type', 'Idempotency-Key', 'If-None-Match', 'Range', 'If-Range'],
    exposeHeaders: ['Location', 'Retry-After', 'ETag', 'Link', 'Content-Range', 'Accept-Ranges'],
    maxAge: preflight_s,
  });
  return async (c, next) =>
    c.req.method === 'OPTIONS' && !origins.includes(c.req.header('origin') ?? '') ? next() : allow(c, next);
}
