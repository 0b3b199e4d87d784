/** Makes a router of the service. */
import { OpenAPIHono } from '@hono/zod-openapi';
import { refuseMisfit } from './answer-problem.ts';
import type { Env } from './context.ts';

/** What does not fit the schemas of a route is a problem like any other. */
export function newRoutes(): OpenAPIHono<Env> {
  return new OpenAPIHono<Env>({
    defaultHook: (result) => {
      if (!result.success) throw refuseMisfit(result.target, result.error);
    },
  });
}
