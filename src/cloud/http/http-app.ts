/** The HTTP side of the service: guards, routes, problems, the page, and the document that describes them. */
import { OpenAPIHono } from '@hono/zod-openapi';
import { socketDocument } from '../api/socket-document.ts';
import { answerFile, fileOf, type PageFile, type PageSource, servePage } from './page/page-files.ts';
import { serveHelp } from './page/help.ts';
import { RequestProblem } from '../api/problem.ts';
import { KeyOperations } from '../access/key-operations.ts';
import type { KeyRing } from '../access/keys.ts';
import type { MapFile } from '../map/map-file.ts';
import { pictureRoutes, type PictureSource } from './picture-routes.ts';
import type { Service } from '../service.ts';
import type { ServiceLog } from '../service-log.ts';
import type { WebhookOperations } from '../webhooks/operations.ts';
import { answerProblem } from './problems.ts';
import { AlarmOperations } from '../alarms/operations.ts';
import type { Changes } from '../changes.ts';
import { alarmRoutes } from './alarm-routes.ts';
import { assetRoutes, locationRoutes } from './asset-routes.ts';
import type { Env } from './context.ts';
import { fileRoutes, type FileRouteParts, uploadRoutes } from './file-routes.ts';
import {
  authenticate,
  compressed,
  conditional,
  crossOrigin,
  type GuardOptions,
  hostGuard,
  jsonOnly,
  knownAfterBody,
  knownParameters,
  limitBody,
  requestId,
  securityHeaders,
  tagged,
} from './guards.ts';
import { apiDocument, describeWebhooks } from './document.ts';
import type { HistoryRetention } from '../history/retention.ts';
import { retentionRoutes } from './history/erasures.ts';
import { historyRoutes } from './history/routes.ts';
import { keyRoutes } from './key-routes.ts';
import { kitRoutes } from './kit-routes.ts';
import { layerRoutes } from './layer-routes.ts';
import { mapRoutes } from './map-routes.ts';
import { sessionRoutes } from './session-routes.ts';
import { taskRoutes } from './task-routes.ts';
import { videoRoutes, type VideoRouteParts } from './video-routes.ts';
import { webhookRoutes } from './webhook-routes.ts';
import { texts } from '../texts.ts';
import type { Store } from '../store/sql-store.ts';

export interface HttpParts
  extends GuardOptions, Pick<VideoRouteParts, 'video_settings'>, Pick<FileRouteParts, 'files'> {
  readonly service: Service;
  readonly store: Store;
  readonly keys: KeyRing;
  readonly changes: Changes;
  readonly log: ServiceLog;
  readonly version: string;
  readonly page: PageSource;
  /** Undefined: no history is kept. */
  readonly retention?: HistoryRetention | undefined;
  /** Undefined: no map is configured. */
  readonly map?: MapFile | undefined;
  /** Left out: a service that has no pictures. */
  readonly pictures?: PictureSource | undefined;
  /** Undefined: they are switched off. */
  readonly webhooks?: WebhookOperations | undefined;
  /** Why the service cannot serve now; undefined: it can. */
  readonly unready: () => Promise<string | undefined>;
}

export function httpApp(parts: HttpParts): OpenAPIHono<Env> {
  const { service, store, gate, log, version } = parts;
  // A path with a slash at its end is the same path.
  const app = new OpenAPIHono<Env>({ strict: false });
  app.onError((error, c) => answerProblem(c, error, log));
  app.use(requestId(), securityHeaders(parts), hostGuard(parts));
  app.route('/', uploadRoutes(parts.files));
  app.use(limitBody());
  // Bodies are read for those who have a key.
  app.use('/api/*', compressed(), tagged(), crossOrigin(parts), authenticate(parts));
  app.use('/api/*', knownParameters(app), jsonOnly(), knownAfterBody(parts), conditional(app));
  const rooms = [
    kitRoutes(service),
    alarmRoutes(new AlarmOperations(parts)),
    assetRoutes(service, store, gate),
    fileRoutes(parts),
    videoRoutes(parts),
    layerRoutes(service, store, gate),
    pictureRoutes(service, parts.pictures),
    locationRoutes(service),
    taskRoutes(service, store),
    ...historyRoutes({ service, store, access: gate, changes: parts.changes, log }),
    retentionRoutes(parts.retention),
    mapRoutes(parts.map),
    webhookRoutes(parts.webhooks),
    keyRoutes(new KeyOperations(parts)),
    sessionRoutes(gate, service),
  ];
  for (const routes of rooms) app.route('/', routes);
  app.on('GET', ['/api/ws', '/api/kits/:kit_id/ws'], () => {
    throw new RequestProblem('upgrade-required', texts.websocket_only);
  });
  describeWebhooks(app);
  app.openAPIRegistry.registerComponent('securitySchemes', 'apiKey', {
    type: 'apiKey',
    in: 'header',
    name: 'X-API-Key',
    description: '`kit-connector service key add` and Create an API key make one.',
  });
  serveDocuments(app, version);
  // For probes that restart what hangs: neither the broker nor the database heals by that.
  app.get('/live', (c) => c.json({ live: true }, 200));
  app.get('/ready', async (c) => {
    const reason = await parts.unready();
    if (reason !== undefined) throw new RequestProblem('unavailable', reason, { retry_after_s: 5 });
    return c.json({ ready: true }, 200);
  });
  servePage(app, parts.page);
  serveHelp(app);
  refuseTheRest(app, log);
  return app;
}

/**
 * Serves the OpenAPI and AsyncAPI documents. Each is built and compressed once, at the first request: most kits never need them, and
 * who asks for them needs no key.
 */
function serveDocuments(app: OpenAPIHono<Env>, version: string): void {
  const serve = (path: string, build: () => Promise<object>): void => {
    const built = async (): Promise<PageFile> => fileOf('application/json', JSON.stringify(await build()));
    let document: Promise<PageFile> | undefined;
    app.get(path, async (c) => answerFile(c, await (document ??= built()), 'no-cache'));
  };
  serve('/openapi.json', async () => apiDocument(app, version));
  serve('/asyncapi.json', async () => socketDocument(version));
}

function refuseTheRest(app: OpenAPIHono<Env>, log: ServiceLog): void {
  const routes = app.openAPIRegistry.definitions.flatMap((each) => (each.type === 'route' ? each.route : []));
  const open = ['/api/ws', '/openapi.json', '/asyncapi.json', '/live', '/ready', '/'].map((path) => ({
    method: 'get',
    path,
  }));
  const methodsOf = methodFinder([...routes, ...open]);
  app.notFound((c) => {
    const { method, path } = c.req;
    const allow = methodsOf(path);
    if (method === 'OPTIONS' && allow.length > 0) {
      return c.body(null, 204, { allow: [...allow, 'OPTIONS'].join(', ') });
    }
    const problem =
      allow.length > 0
        ? new RequestProblem('method-not-allowed', texts.methods_of(path, allow.join(', ')), { allow })
        : new RequestProblem('not-found', texts.no_route(method, path));
    return answerProblem(c, problem, log);
  });
}

interface KnownRoute {
  readonly method: string;
  /** With `{name}` for parameters. */
  readonly path: string;
}

/** Returns the methods that a path supports, for 405 in place of 404 (RFC 9110, section 15.5.6); none when it does not exist. */
function methodFinder(routes: readonly KnownRoute[]): (path: string) => readonly string[] {
  const known = routes.map(({ method, path }) => ({
    method: method.toUpperCase(),
    form: new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/gu, '[^/]+')}$`, 'u'),
  }));
  return (path) => {
    const methods = known.filter(({ form }) => form.test(path)).map(({ method }) => method);
    return methods.includes('GET') ? [...methods, 'HEAD'] : methods;
  };
}
