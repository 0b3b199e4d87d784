/** The history of kits: messages, events, numbers over time, tracks, and what is missing. */
import { type OpenAPIHono, type z } from '@hono/zod-openapi';
import type { Gate } from '../../access/gate.ts';
import { completeness, eventPage, historyPage, seriesAnswer, track } from '../../api/history-resources.ts';
import { RequestProblem } from '../../api/problem.ts';
import { HistoryOperations } from '../../history/reading/operations.ts';
import { Zone } from '../../history/reading/zone.ts';
import { trackGeoJson, trackGpx, trackKml } from '../../history/reading/track.ts';
import type { Service } from '../../service.ts';
import type { ServiceLog } from '../../service-log.ts';
import { anyProblem, assetParams, type Env, kitParams, okJson, withForms, routesUnder } from '../context.ts';
import type { Changes } from '../../changes.ts';
import { erasureRoutes } from './erasures.ts';
import { cuttable_paths, noteCuts } from './cut.ts';
import { exportRoutes } from './export.ts';
import { HistoryGate } from './gate.ts';
import {
  eventQuery,
  fleetEventQuery,
  historyQuery,
  series_max,
  seriesQuery,
  spanOf,
  trackQuery,
} from './query.ts';
import { newRoutes } from '../problems.ts';
import { seriesCsv, seriesRows, trackCsv } from './csv.ts';
import { texts } from '../../texts.ts';
import type { Store } from '../../store/sql-store.ts';
import { day_ms } from '../../../platform/time.ts';

const route = routesUnder('history');
const csv_type = 'text/csv; charset=utf-8';
/** Kits of one request about a fleet. */
const fleet_kits_max = 100;
/** The shortest bucket of a series. */
const bucket_ms_min = 1_000;

const read = <P extends string, Q extends z.ZodObject, R extends z.ZodType>(
  path: P,
  query: Q,
  about: {
    readonly operationId: string;
    readonly summary: string;
    readonly description: string;
    readonly body: R;
  },
) => {
  const { body, ...named } = about;
  const params = path.includes('{asset_id}') ? assetParams : kitParams;
  const responses = { 200: okJson(body, about.summary), ...anyProblem };
  return route('get', path, { ...named, request: { params, query }, responses });
};

const listMessages = read('/api/kits/{kit_id}/history', historyQuery, {
  operationId: 'listHistory',
  summary: 'List messages of a kit',
  description: 'Returns messages that the kit sent, each once, by time of observation.',
  body: historyPage,
});
const listAssetMessages = read('/api/kits/{kit_id}/assets/{asset_id}/history', historyQuery, {
  operationId: 'listAssetHistory',
  summary: 'List messages of an asset',
  description:
    'Returns messages about the asset, also of a removed one, by time of observation. 404 when there are none and the kit never had this asset.',
  body: historyPage,
});
const listEvents = read('/api/kits/{kit_id}/events', eventQuery, {
  operationId: 'listEvents',
  summary: 'List events of a kit',
  description: 'Returns events, tasks and changes of presence, by time of observation.',
  body: eventPage,
});
const listFleetEvents = route('get', '/api/events', {
  operationId: 'listFleetEvents',
  summary: 'List events of several kits',
  description: `Returns the events of up to ${fleet_kits_max} kits of the key, by time of observation.`,
  request: { query: fleetEventQuery },
  responses: { 200: okJson(eventPage, 'by time'), ...anyProblem },
});
const getSeries = route('get', '/api/kits/{kit_id}/series', {
  operationId: 'getSeries',
  summary: 'Get numbers over time',
  description:
    'Returns numbers of feeds in buckets; a bucket without a value is absent, and rows have one of nulls in a gap. 413 names what to change when it reads too much.',
  request: { params: kitParams, query: seriesQuery },
  responses: {
    200: withForms(okJson(seriesAnswer, 'the series, in the order of `select`; with `shape` another form'), {
      'text/csv': 'time,kit:battery\r\n2026-11-21T10:00:00.000Z,81.5\r\n',
    }),
    ...anyProblem,
  },
});
const getTrack = route('get', '/api/kits/{kit_id}/assets/{asset_id}/track', {
  operationId: 'getTrack',
  summary: 'Get the track of an asset',
  description:
    'Returns the fixes of the asset as lines; cut at 180 degrees; with `format` as GPX, KML or CSV.',
  request: { params: assetParams, query: trackQuery },
  responses: {
    200: withForms(okJson(track, 'the track'), {
      'text/csv': 'time,lat,lon,alt_m,line\r\n',
      'application/gpx+xml': '<gpx/>',
      'application/vnd.google-earth.kml+xml': '<kml/>',
    }),
    ...anyProblem,
  },
});
const getCompleteness = route('get', '/api/kits/{kit_id}/completeness', {
  operationId: 'getCompleteness',
  summary: 'Get what is missing',
  description: 'Returns which messages of the kit never arrived, and the reasons that it reported.',
  request: { params: kitParams },
  responses: { 200: okJson(completeness, 'by epoch, newest first'), ...anyProblem },
});
const assetIdOf = (params: { readonly kit_id: string }): string => assetParams.parse(params).asset_id;

export interface HistoryParts {
  readonly service: Service;
  readonly store: Store;
  readonly access: Gate;
  readonly changes: Changes;
  readonly log: ServiceLog;
}

export function historyRoutes({
  service,
  store,
  access,
  changes,
  log,
}: HistoryParts): readonly OpenAPIHono<Env>[] {
  const history = new HistoryOperations(store);
  const gate = new HistoryGate();
  return [
    cutRoutes(log),
    messageRoutes(service, history, gate),
    figureRoutes(service, history, gate),
    exportRoutes(service, history, gate, access),
    erasureRoutes({ service, history, changes, log }),
  ];
}

/** Before the routes that it is about. */
function cutRoutes(log: ServiceLog): OpenAPIHono<Env> {
  const routes = newRoutes();
  routes.on('GET', cuttable_paths, noteCuts(log));
  return routes;
}

function messageRoutes(service: Service, history: HistoryOperations, gate: HistoryGate): OpenAPIHono<Env> {
  const routes = newRoutes();
  routes.openapi(listMessages, async (c) => {
    const { kit_id } = c.req.valid('param');
    const query = c.req.valid('query');
    await service.kit(c.var.principal, kit_id);
    return c.json(
      await gate.run(c.var.principal, async () =>
        history.messages(kit_id, { ...query, ...spanOf(query, Date.now()) }),
      ),
      200,
    );
  });
  routes.openapi(listAssetMessages, async (c) => {
    const params = c.req.valid('param');
    const query = c.req.valid('query');
    await service.kit(c.var.principal, params.kit_id);
    const asset_id = assetIdOf(params);
    const filter = { ...query, ...spanOf(query, Date.now()), asset_id };
    const page = await gate.run(c.var.principal, async () => history.messages(params.kit_id, filter));
    if (isWithout(page.messages, page, query)) await history.demandKnown(params.kit_id, asset_id);
    return c.json(page, 200);
  });
  routes.openapi(listEvents, async (c) => {
    const { kit_id } = c.req.valid('param');
    const query = c.req.valid('query');
    await service.kit(c.var.principal, kit_id);
    const filter = { ...query, severities: query.severity, ...spanOf(query, Date.now()) };
    const page = await gate.run(c.var.principal, async () => history.events(kit_id, filter));
    if (isWithout(page.events, page, query))
      for (const asset_id of query.assets ?? []) await history.demandKnown(kit_id, asset_id);
    return c.json(page, 200);
  });
  routes.openapi(listFleetEvents, async (c) => {
    const { kits, ...query } = c.req.valid('query');
    const known = (await service.kits(c.var.principal)).map(({ id }) => id);
    const foreign = kits?.find((id) => !known.includes(id));
    if (foreign !== undefined) throw new RequestProblem('not-found', texts.no_kit(foreign));
    const wanted = kits ?? known;
    if (wanted.length > fleet_kits_max) {
      throw new RequestProblem('bad-request', texts.too_many_kits(wanted.length, fleet_kits_max));
    }
    const filter = { ...query, severities: query.severity, ...spanOf(query, Date.now()) };
    const page = await gate.runParts(c.var.principal, async (inTurn) =>
      history.fleetEvents(wanted, { ...filter, kits }, inTurn),
    );
    return c.json(page, 200);
  });
  return routes;
}

/** Nothing was found and nothing follows: the question may be about something that was never there. */
function isWithout(
  found: readonly unknown[],
  { next, more }: { readonly next: string | null; readonly more?: boolean | undefined },
  { cursor }: { readonly cursor?: string | undefined },
): boolean {
  return found.length === 0 && (next === null || more === false) && cursor === undefined;
}

/** One for each series, all different, and none that of the time. */
function areNames(names: readonly string[], count: number): boolean {
  return names.length === count && new Set(['time', ...names]).size === count + 1;
}

function figureRoutes(service: Service, history: HistoryOperations, gate: HistoryGate): OpenAPIHono<Env> {
  const routes = newRoutes();
  routes.openapi(getSeries, async (c) => {
    const { kit_id } = c.req.valid('param');
    const { select, points, bucket_s, shape, names, tz, ...times } = c.req.valid('query');
    if (select.length === 0 || select.length > series_max) {
      throw new RequestProblem(
        'bad-request',
        `"select" names ${select.length} numbers; name 1 to ${series_max}`,
      );
    }
    if (names && !areNames(names, select.length)) {
      throw new RequestProblem('bad-request', texts.series_names(names.length, select.length));
    }
    await service.kit(c.var.principal, kit_id);
    const zone = tz === 'kit' ? await service.timeZone(c.var.principal, kit_id) : tz;
    const span = spanOf(times, Date.now());
    const bucket_ms = bucket_s === undefined ? bucketOf(span, points) : bucket_s * 1_000;
    const list = await gate.run(c.var.principal, async () =>
      history.series(kit_id, {
        select,
        ...span,
        bucket_ms,
        zone: zone === undefined ? undefined : new Zone(zone),
      }),
    );
    for (const { select: each, t } of list.series)
      if (t.length === 0) await history.demandSelected(kit_id, each);
    if (shape === 'columns') return c.json(list, 200);
    return shape !== 'rows'
      ? c.body(seriesCsv(list, shape, names), 200, { 'content-type': csv_type })
      : c.body(JSON.stringify(seriesRows(list, names)), 200, { 'content-type': 'application/json' });
  });
  routes.openapi(getTrack, async (c) => {
    const params = c.req.valid('param');
    const asset_id = assetIdOf(params);
    const { tolerance_m, gap_s, format, ...times } = c.req.valid('query');
    await service.kit(c.var.principal, params.kit_id);
    const query = {
      kit_id: params.kit_id,
      asset_id,
      ...spanOf(times, Date.now()),
      tolerance_m,
      gap_ms: gap_s * 1_000,
    };
    const found = await gate.run(c.var.principal, async () => history.track(query));
    if (found.fixes === 0) await history.demandKnown(params.kit_id, asset_id);
    const asset = await service.asset(c.var.principal, params.kit_id, asset_id).catch(() => undefined);
    const named = { asset_id, name: asset?.name ?? asset_id };
    if (format === 'geojson') return c.json(trackGeoJson(found, named), 200);
    if (format === 'kml')
      return c.body(trackKml(found, named), 200, { 'content-type': 'application/vnd.google-earth.kml+xml' });
    return format === 'gpx'
      ? c.body(trackGpx(found, named), 200, { 'content-type': 'application/gpx+xml' })
      : c.body(trackCsv(found, format), 200, { 'content-type': csv_type });
  });
  routes.openapi(getCompleteness, async (c) => {
    const { kit_id } = c.req.valid('param');
    await service.kit(c.var.principal, kit_id);
    return c.json(await gate.run(c.var.principal, async () => history.completeness(kit_id)), 200);
  });
  return routes;
}

/** Buckets that people read: of 1, 2, 5, 10 s and so on up to a day, or whole days. */
const bucket_steps_s = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200, 86_400,
];

function bucketOf(
  { from_ms, to_ms }: { readonly from_ms: number; readonly to_ms: number },
  points: number,
): number {
  const least_ms = Math.max(bucket_ms_min, (to_ms - from_ms) / points);
  const step_s = bucket_steps_s.find((each) => each * 1_000 >= least_ms);
  return step_s === undefined ? Math.ceil(least_ms / day_ms) * day_ms : step_s * 1_000;
}
