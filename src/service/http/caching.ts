/** Saves bytes of responses: compresses them, and answers 304 to a client that has the same response already. */
import type { MiddlewareHandler } from 'hono';
import { compress } from 'hono/compress';
import { etag, RETAINED_304_HEADERS } from 'hono/etag';
import type { Env } from './context.ts';

/** Headers of CORS belong to a 304 too: without them a page of another origin may not read it. */
const retainedHeaders = [
  ...RETAINED_304_HEADERS,
  'access-control-allow-origin',
  'access-control-expose-headers',
];

/** Compresses with gzip or deflate, as the client accepts. What is compressed already, such as the page, stays as it is. */
export function compressed(): MiddlewareHandler {
  return compress();
}

/** An export has no end that could be waited for: hashing it would hold all of it in memory. The file of the map has its own tag. */
const streamed = /\/(?:export|archive\.pmtiles)\/?$/u;

/** Adds an ETag to successful reads. It is weak: the same content may leave compressed or not. */
export function tagged(): MiddlewareHandler<Env> {
  const add = etag({ weak: true, retainedHeaders });
  return async (c, next) => (streamed.test(c.req.path) ? next() : add(c, next));
}
