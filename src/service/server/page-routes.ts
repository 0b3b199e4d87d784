/** Serves the page: `GET /`, and its files below `/page/{version}/`. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { chooseEncoding, loadPage, type Page, type PageFile } from '../page-files.ts';
import { RequestProblem } from '../problem.ts';
import type { Env } from './context.ts';
import { newRoutes } from './new-routes.ts';

/** The address of a file names its content. */
const immutable = 'public, max-age=31536000, immutable';

export function pageRoutes(): OpenAPIHono<Env> {
  const routes = newRoutes();
  let loading: Promise<Page> | undefined;
  /** Read at the first visit: a kit whose page nobody opens does not pay for it. */
  const page = async (): Promise<Page> => {
    loading ??= loadPage();
    return loading;
  };
  routes.get('/', async (c) => answerFile(c, (await page()).index, 'no-cache'));
  routes.get('/page/:version/:name', async (c) => {
    const { version, files } = await page();
    const file = files.get(c.req.param('name'));
    if (!file || c.req.param('version') !== version) {
      throw new RequestProblem('not-found', 'this version of the page is not served any more; load it again');
    }
    return answerFile(c, file, immutable);
  });
  return routes;
}

function answerFile(c: Context<Env>, { type, bodies, hash }: PageFile, caching: string): Response {
  const encoding = chooseEncoding(c.req.header('accept-encoding'));
  const etag = `"${hash}-${encoding}"`;
  c.header('Cache-Control', caching);
  c.header('ETag', etag);
  c.header('Vary', 'Accept-Encoding');
  const known = (c.req.header('if-none-match') ?? '').split(',').map((part) => part.trim());
  if (known.includes(etag)) return c.body(null, 304);
  c.header('Content-Type', type);
  if (encoding !== 'identity') c.header('Content-Encoding', encoding);
  return c.body(bodies[encoding]);
}
