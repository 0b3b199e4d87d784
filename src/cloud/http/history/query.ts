/** The parameters of requests about the history. */
import { z } from '@hono/zod-openapi';
import { history_classes } from '../../history/message.ts';
import { cursor_chars_max } from '../../history/reading/cursor.ts';
import type { Order } from '../../history/reading/page.ts';
import { zoneName } from '../../api/requests.ts';
import { alarmSeverity } from '../../severity.ts';
import { excel_forms } from './csv.ts';
import { readTime } from '../../api/times.ts';
import { RequestProblem } from '../../api/problem.ts';
import { texts } from '../../texts.ts';
import { day_ms } from '../../../platform/time.ts';

export const history_limit_max = 5_000;
export const series_max = 20;
export const points_max = 2_000;
/** The longest stretch of one request about messages or a track. */
export const hour_ms = 3_600_000;

/** A parameter with its description in the document. */
export const query = <S extends z.ZodType>(
  name: string,
  schema: S,
  description: string,
  example?: unknown,
): S =>
  schema.openapi({ param: { name, in: 'query', description, ...(example !== undefined && { example }) } });

const time = z
  .string()
  .max(40)
  .transform((text, context) => {
    const time_ms = readTime(text);
    if (time_ms !== undefined) return time_ms;
    context.addIssue({ code: 'custom', message: texts.no_time(text) });
    return z.NEVER;
  });

/** An empty one would leave nothing, such as that of a variable of a dashboard. */
export const list = z
  .string()
  .max(4_096)
  .transform((text) => text.split(',').filter((each) => each !== ''))
  .refine((some) => some.length > 0, texts.empty_list);

/** Of values that are known. */
export const listOf = <T extends string>(values: z.ZodType<T>) =>
  list.transform((some, context): T[] =>
    some.flatMap((each) => {
      const { data, error } = values.safeParse(each);
      if (error) context.addIssue({ code: 'custom', message: error.issues[0]?.message ?? '' });
      return data === undefined ? [] : [data];
    }),
  );

export const ids = list.transform((some, context) => {
  const foreign = some.find((each) => !z.uuid().safeParse(each).success);
  if (foreign !== undefined) context.addIssue({ code: 'custom', message: texts.no_id(foreign) });
  return [...new Set(some.map((each) => each.toLowerCase()))];
});

const from = query(
  'from',
  time.optional(),
  'from this time on; a day before `to` when left out',
  '2026-11-20T10:00:00Z',
);
const to = query('to', time.optional(), 'before this time; now when left out', '2026-11-21T10:00:00Z');
const order = query(
  'order',
  z.enum(['asc', 'desc', 'arrival']).default('desc'),
  'oldest or newest first, by the time of observation; `arrival`: as this service stored them, so that what comes late is behind the cursor',
);
const arrived_from = query(
  'arrived_from',
  time.optional(),
  'only with `order=arrival`: what was stored from this time on; all that is kept when left out',
  '2026-11-21T10:00:00Z',
);
const cursor = query(
  'cursor',
  z.string().max(cursor_chars_max).optional(),
  '`next` of the page before, with the same query',
);
export const limitOf = (most: number, usual: number) =>
  query('limit', z.coerce.number().int().min(1).max(most).default(usual), 'messages in one response', usual);

const of_excel =
  '`excel_comma` and `excel_semicolon`: CSV that Excel opens by a double click, the second where commas are decimal signs';

export const historyQuery = z.object({
  class: query('class', z.enum(history_classes).optional(), 'only messages of this class'),
  feed: query('feed', z.string().max(64).optional(), 'only messages of this feed or event', 'gps'),
  from,
  to,
  order,
  arrived_from,
  limit: limitOf(history_limit_max, 500),
  cursor,
});

export const eventQuery = z.object({
  types: query('types', list.optional(), 'only these types, separated by commas', 'motion,task'),
  assets: query('assets', ids.optional(), 'only events of these assets, separated by commas'),
  severity: query(
    'severity',
    listOf(alarmSeverity).optional(),
    'only events of assets of this severity, separated by commas',
    'critical',
  ),
  from,
  to,
  order,
  arrived_from,
  limit: limitOf(1_000, 100),
  cursor,
});

export const fleetEventQuery = eventQuery.extend({
  kits: query('kits', ids.optional(), 'only these kits, separated by commas; all of the key when left out'),
});

export const seriesQuery = z.object({
  select: query(
    'select',
    list,
    'up to 20 numbers, separated by commas: `{asset_id}:{feed}.{field}`, or `kit:{field}` for telemetry of the kit; a field of an entry of a list by its name, `kit:wans.eth3.latency_ms`',
    'kit:battery',
  ),
  from,
  to,
  points: query(
    'points',
    z.coerce.number().int().min(1).max(points_max).default(300),
    'about as many buckets',
    96,
  ),
  bucket_s: query(
    'bucket_s',
    z.coerce
      .number()
      .int()
      .min(1)
      .max(31 * 86_400)
      .optional(),
    'length of a bucket instead of `points`',
    900,
  ),
  tz: query(
    'tz',
    z
      .union([z.literal('kit'), zoneName])
      .optional()
      .openapi({ type: 'string' }),
    'buckets begin on the hours and days of this time zone; `kit`: of the one that the kit has (`time_zone`); UTC when left out',
    'Europe/Zurich',
  ),
  shape: query(
    'shape',
    z.enum(['columns', 'rows', 'csv', ...excel_forms]).default('columns'),
    `\`rows\`: a list with one object for each time, as Grafana reads it; \`csv\`: the same as text; ${of_excel}`,
  ),
  names: query(
    'names',
    list.optional(),
    'names of the series in `rows` and `csv`, as many as in `select`, separated by commas; the selections when left out',
    'battery',
  ),
});

export const trackQuery = z.object({
  from,
  to,
  tolerance_m: query(
    'tolerance_m',
    z.coerce.number().min(0).max(10_000).default(0),
    'leaves out points that are nearer than this to the line',
    5,
  ),
  gap_s: query(
    'gap_s',
    z.coerce.number().min(1).max(86_400).default(300),
    'a longer pause between two fixes ends a line',
    300,
  ),
  format: query(
    'format',
    z.enum(['geojson', 'gpx', 'kml', 'csv', ...excel_forms]).default('geojson'),
    `form of the response; ${of_excel}`,
  ),
});

export const exportQuery = z.object({
  class: historyQuery.shape.class,
  feed: historyQuery.shape.feed,
  from,
  to,
  cursor,
  format: query(
    'format',
    z.enum(['ndjson', 'csv', 'flat_csv', ...excel_forms]).default('ndjson'),
    `\`flat_csv\`: CSV with a column for each field of the data; ${of_excel}`,
  ),
});

export const erasuresQuery = z.object({
  limit: query(
    'limit',
    z.coerce.number().int().min(1).max(1_000).default(100),
    'erasures in one response',
    100,
  ),
  cursor: query('cursor', z.union([z.uuid(), z.literal('0')]).optional(), '`next` of the page before'),
});

export const eraseQuery = z.object({
  before: query(
    'before',
    time,
    'erases what was observed before this time, which is now at the latest',
    '2026-11-20T10:00:00Z',
  ),
});

interface Times {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  readonly order?: Order | undefined;
  readonly arrived_from?: number | undefined;
}

/** The span of a query. Throws `bad-request` when it ends before it begins. */
export function spanOf(given: Times, now_ms: number): { readonly from_ms: number; readonly to_ms: number } {
  if (given.order === 'arrival') {
    // What comes late may have any time.
    const { from = Number.MIN_SAFE_INTEGER, to = Number.MAX_SAFE_INTEGER } = given;
    return { from_ms: from, to_ms: to };
  }
  if (given.arrived_from !== undefined) throw new RequestProblem('bad-request', texts.only_by_arrival);
  // What was observed in this moment belongs to it, also when the clock of the kit is ahead by hours; what is more than a day ahead
  // counts with its arrival.
  const to_ms = given.to ?? now_ms + day_ms;
  if (given.from !== undefined && given.to !== undefined && given.from > given.to)
    throw new RequestProblem('bad-request', texts.turned_span);
  return { from_ms: given.from ?? (given.to ?? now_ms + hour_ms) - day_ms, to_ms };
}
