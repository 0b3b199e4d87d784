/** Serves the page: its first file at `/`, and the others under an address that changes with their content. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { chooseEncoding, type Page, type PageFile } from '../page-files.ts';
import type { Env } from './context.ts';

export function servePage(app: OpenAPIHono<Env>, { index, files, version }: Page): void {
  app.get('/', (c) => answer(c, index, 'no-cache'));
  for (const [name, file] of files) {
    app.get(`/page/${version}/${name}`, (c) => answer(c, file, 'public, max-age=31536000, immutable'));
  }
}

function answer(c: Context<Env>, { type, bodies, hash }: PageFile, caching: string): Response {
  const tag = `"${hash}"`;
  c.header('ETag', tag);
  c.header('Cache-Control', caching);
  c.header('Vary', 'Accept-Encoding');
  if (c.req.header('if-none-match') === tag) return c.body(null, 304);
  const encoding = chooseEncoding(c.req.header('accept-encoding'));
  c.header('Content-Type', type);
  if (encoding !== 'identity') c.header('Content-Encoding', encoding);
  return c.body(bodies[encoding]);
}
