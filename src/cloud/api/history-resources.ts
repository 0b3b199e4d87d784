/** The history of a kit, as clients read it. Times are ISO 8601 in UTC. */
import { z } from '@hono/zod-openapi';
import { json, jsonObject } from '../../contract/json.ts';
import type { StoredErasure } from '../stored/stored.ts';

const timestamp = z.iso.datetime();
const next = z
  .string()
  .nullable()
  .describe(
    'cursor of the next page; null: this is the last one. In the order of arrival never null: keep it and ask again later',
  );
const more = z
  .boolean()
  .optional()
  .describe('only in the order of arrival: true: there is more already; false: nothing more at the moment');
const arrived_at = timestamp
  .optional()
  .describe('only in the order of arrival: when this service stored it; rises from message to message');

const historyMessage = z
  .strictObject({
    time: timestamp.describe(
      'time of observation by the clock of the kit; of a lost connection, when the service noticed it',
    ),
    time_quality: z.literal('unsynced').optional().describe('the clock of the kit was not set'),
    arrived_at,
    channel: z.string().describe('topic of the contract below `k1/{kit_id}/up/`'),
    asset_id: z.uuid().optional(),
    feed: z.string().optional(),
    epoch: z.int().nonnegative().describe('0: the kit did not number it, such as the fix of a partner'),
    seq: z.int().nonnegative(),
    data: json,
  })
  .openapi('HistoryMessage');

export const historyPage = z
  .strictObject({ messages: z.array(historyMessage), next, more })
  .openapi('HistoryPage');
export type HistoryPage = z.output<typeof historyPage>;

const historyEvent = z
  .strictObject({
    time: timestamp,
    arrived_at,
    kit_id: z.uuid(),
    type: z.string().describe('name of the event feed, `task`, or `state` for the presence of the kit'),
    asset_id: z.uuid().optional(),
    data: jsonObject,
  })
  .openapi('HistoryEvent');
export type HistoryEvent = z.output<typeof historyEvent>;

export const eventPage = z.strictObject({ events: z.array(historyEvent), next, more }).openapi('EventPage');
export type EventPage = z.output<typeof eventPage>;

const erasure = z
  .strictObject({
    asset_id: z.uuid().nullable().describe('null: the whole kit'),
    before: timestamp.describe('what was observed before this time is erased, also when it arrives later'),
    erased_at: timestamp.describe('when it was asked for last'),
  })
  .openapi('Erasure');

export const erasureList = z.strictObject({ erasures: z.array(erasure), next }).openapi('ErasureList');
export type ErasureList = z.output<typeof erasureList>;

export function erasureResource({ asset_id, before_ms, erased_ms }: StoredErasure): z.output<typeof erasure> {
  return {
    asset_id: asset_id ?? null,
    before: new Date(before_ms).toISOString(),
    erased_at: new Date(erased_ms).toISOString(),
  };
}

const figure = z.array(z.number());
const seriesEntry = z
  .strictObject({
    select: z.string().describe('as in the request'),
    source: z.enum(['messages', 'figures']).describe('`figures`: made from the figures of ten minutes'),
    t: z.array(timestamp).describe('start of each bucket that has a value'),
    n: figure.describe('values in the bucket'),
    mean: figure,
    min: figure,
    max: figure,
    last: figure,
  })
  .openapi('SeriesEntry');
export type SeriesEntry = z.output<typeof seriesEntry>;

export const seriesList = z
  .strictObject({
    from: timestamp,
    to: timestamp,
    bucket_ms: z.int().positive(),
    series: z.array(seriesEntry),
  })
  .openapi('SeriesList');
export type SeriesList = z.output<typeof seriesList>;

const seriesRow = z.looseObject({ time: timestamp }).catchall(z.number().nullable()).openapi('SeriesRow');
/** With `shape=rows` a list: a number or null for each series, under its name. */
export const seriesAnswer = z.union([seriesList, z.array(seriesRow)]).openapi('SeriesAnswer');

export const track = z
  .strictObject({
    type: z.literal('Feature'),
    properties: z.strictObject({
      asset_id: z.uuid(),
      name: z.string(),
      fixes: z.int().nonnegative().describe('fixes before points were left out'),
      times: z.array(z.array(timestamp)).describe('the time of each point of each line'),
    }),
    geometry: z.strictObject({
      type: z.literal('MultiLineString'),
      coordinates: z.array(z.array(z.array(z.number()))).describe('longitude, latitude, altitude in metres'),
    }),
  })
  .openapi('Track');

const missing = z
  .strictObject({
    lo: z.int().nonnegative(),
    hi: z.int().nonnegative(),
    messages: z.int().positive(),
    reasons: z.array(z.string()).describe('as the kit reported them; empty: not explained yet'),
  })
  .openapi('MissingMessages');

const reportedDrop = z
  .strictObject({
    lo: z.int().nonnegative(),
    hi: z.int().nonnegative(),
    lane: z.string(),
    reason: z.string(),
    messages: z.int().positive(),
    reported_at: timestamp,
  })
  .openapi('ReportedDrop');

export const completeness = z
  .strictObject({
    since: timestamp.nullable().describe('since when this service keeps history; null: it keeps none'),
    oldest: z
      .strictObject({
        event: timestamp.nullable(),
        position: timestamp.nullable(),
        feed: timestamp.nullable(),
        kit: timestamp.nullable(),
      })
      .describe(
        'when the oldest message that is kept of each class was observed: received ones before it were deleted by age, by the size of the kit or by an erasure; null: none is kept, or only of the last minutes',
      ),
    more_dropped: z
      .boolean()
      .describe(
        'the kit reported more drops than are listed, those of the oldest epochs: reasons may be absent there',
      ),
    epochs: z.array(
      z
        .strictObject({
          epoch: z.int().nonnegative(),
          received: z.int().nonnegative(),
          missing: z.array(missing),
          more: z.int().nonnegative().describe('missing stretches that are not listed'),
          dropped: z.array(reportedDrop),
        })
        .openapi('EpochCompleteness'),
    ),
  })
  .openapi('Completeness');
export type CompletenessResource = z.output<typeof completeness>;

const kept_days = z.int().min(1).max(4_000);
const retention = {
  days: z
    .strictObject({
      event: kept_days.describe('events, tasks and presence'),
      position: kept_days.describe('positions'),
      feed: kept_days.describe('messages of other feeds'),
      kit: kept_days.describe('telemetry of kits and everything else'),
    })
    .describe('days that messages of each class are kept')
    .openapi('RetentionDays'),
  figures_days: kept_days.describe('days that the figures for ten minutes are kept'),
  kit_max_mb: z
    .int()
    .min(1)
    .max(10_000_000)
    .nullable()
    .describe(
      'size of the messages of one kit, beyond which the oldest feeds go, then positions, then telemetry; null: that of the configuration, which is also the most',
    ),
};
export const setRetention = z.strictObject(retention).openapi('SetRetention');
export const historyRetention = z
  .strictObject({
    ...retention,
    source: z.enum(['configuration', 'api']).describe('who has set it'),
  })
  .openapi('Retention');
