/** The HTTP side of the service: guards, routes, problems, and the document that describes them. */
import { OpenAPIHono } from '@hono/zod-openapi';
import { RequestProblem } from '../problem.ts';
import type { Service } from '../service.ts';
import { answerProblem, type ServiceLog } from './answer-problem.ts';
import { assetRoutes } from './asset-routes.ts';
import type { Env } from './context.ts';
import {
  authenticate,
  type GuardOptions,
  hostGuard,
  jsonOnly,
  limitBody,
  requestId,
  securityHeaders,
} from './guards.ts';
import { kitRoutes } from './kit-routes.ts';
import { taskRoutes } from './task-routes.ts';

export interface HttpParts extends GuardOptions {
  readonly service: Service;
  readonly log: ServiceLog;
  readonly version: string;
}

export function httpApp(parts: HttpParts): OpenAPIHono<Env> {
  const { service, log, version } = parts;
  const app = new OpenAPIHono<Env>();
  app.onError((error, c) => answerProblem(c, error, log));
  app.notFound((c) =>
    answerProblem(c, new RequestProblem('not-found', `there is no ${c.req.method} ${c.req.path}`), log),
  );
  app.use(requestId(), securityHeaders(parts), hostGuard(parts), limitBody(), jsonOnly());
  app.use('/api/*', authenticate(parts));
  for (const routes of [kitRoutes(service), assetRoutes(service), taskRoutes(service)])
    app.route('/', routes);
  app.openAPIRegistry.registerComponent('securitySchemes', 'apiKey', {
    type: 'apiKey',
    in: 'header',
    name: 'X-API-Key',
  });
  app.doc31('/openapi.json', {
    openapi: '3.1.0',
    info: { title: 'Kit, Asset and Telemetry Service', version },
    security: [{ apiKey: [] }],
  });
  return app;
}
