/** Serves the files of the page: small, few, and in memory. */
import { createHash } from 'node:crypto';
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Env } from './context.ts';

export interface PageFile {
  /** Of `Content-Type`. */
  readonly type: string;
  readonly body: Uint8Array<ArrayBuffer>;
  /** The same, gzipped; undefined: not worth it. */
  readonly gzip?: Uint8Array<ArrayBuffer> | undefined;
}

/** By path, such as `/` and `/assets/page.js`. */
export type PageFiles = ReadonlyMap<string, PageFile>;

/** The files may change with each version of the software, so browsers ask each time and mostly hear that nothing changed. */
export function servePage(app: OpenAPIHono<Env>, files: PageFiles): void {
  for (const [path, { type, body, gzip }] of files) {
    const tag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
    app.get(path, (c) => {
      c.header('ETag', tag);
      c.header('Cache-Control', 'no-cache');
      c.header('Vary', 'Accept-Encoding');
      if (c.req.header('if-none-match') === tag) return c.body(null, 304);
      c.header('Content-Type', type);
      if (!gzip || !/\bgzip\b/u.test(c.req.header('accept-encoding') ?? '')) return c.body(body);
      c.header('Content-Encoding', 'gzip');
      return c.body(gzip);
    });
  }
}
