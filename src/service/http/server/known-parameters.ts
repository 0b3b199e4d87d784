/**
 * Refuses query parameters that are none of a route's: a filter or a limit that is misspelt would be left out in silence, and the
 * answer would look like that to the question (OGC API Features, requirement 8). A route that has no parameters ignores them, as the
 * interface does: clients add some against caches.
 */
import { closest } from 'fastest-levenshtein';
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { MiddlewareHandler } from 'hono';
import { matchedRoutes } from 'hono/route';
import { z } from 'zod';
import { RequestProblem } from '../../api/problem.ts';
import { texts } from '../../texts.ts';
import type { Env } from '../context.ts';

/** Comes after authentication: `app` has its routes by the first request. */
export function knownParameters(app: OpenAPIHono<Env>): MiddlewareHandler<Env> {
  let known: ReadonlyMap<string, readonly string[]> | undefined;
  return async (c, next) => {
    const asked = [...new URL(c.req.url).searchParams.keys()];
    if (asked.length === 0) return next();
    known ??= parametersOf(app);
    for (const { method, path } of matchedRoutes(c)) {
      const names = known.get(`${method} ${path}`);
      if (!names) continue;
      const foreign = asked.find((name) => !names.includes(name));
      if (foreign !== undefined) throw new RequestProblem('bad-request', refusalOf(foreign, names));
    }
    return next();
  };
}

/** The names of the query parameters of each route that has some, by its method and path. */
function parametersOf(app: OpenAPIHono<Env>): ReadonlyMap<string, readonly string[]> {
  return new Map(
    app.openAPIRegistry.definitions.flatMap((each) => {
      if (each.type !== 'route') return [];
      const { method, path, request } = each.route;
      const names = request?.query instanceof z.ZodObject ? Object.keys(request.query.shape) : [];
      if (names.length === 0) return [];
      return [[`${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/gu, ':$1')}`, names] as const];
    }),
  );
}

function refusalOf(foreign: string, names: readonly string[]): string {
  return texts.unknown_parameter(foreign, closest(foreign.toLowerCase(), names), names.join(', '));
}
