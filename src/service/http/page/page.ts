/** Serves the page: its first file at `/`, and the others under an address that changes with their content. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { chooseEncoding, type PageFile, type PageSource } from './page-files.ts';
import type { Env } from '../context.ts';

export function servePage(app: OpenAPIHono<Env>, page: PageSource): void {
  app.get('/', async (c) => answerFile(c, (await page()).index, 'no-cache'));
  app.get('/page/:version/:name{.+}', async (c) => {
    const { version, files, library } = await page();
    const name = c.req.param('name');
    const file = c.req.param('version') === version ? (files.get(name) ?? (await library(name))) : undefined;
    return file ? answerFile(c, file, 'public, max-age=31536000, immutable') : c.notFound();
  });
}

/** Answers with the smallest form of the file that the client takes. */
export function answerFile(c: Context<Env>, { type, bodies, hash }: PageFile, caching: string): Response {
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
