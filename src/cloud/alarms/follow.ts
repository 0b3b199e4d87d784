/** Opens and closes alarms in the transaction that stores what was observed, so that none is lost or doubled. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { jsonObject } from '../../contract/json.ts';
import type { AlarmSeverity } from '../severity.ts';
import { isOnline } from '../api/views.ts';
import { isNewer, type Message } from '../read-message.ts';
import { jsonText, number, numberOrNull, text, textOrNull } from '../sql/columns.ts';
import { type Clause, clause, listed, sql, type Queries, type Row } from '../sql/database.ts';
import { allSettled, inPortions } from '../sql/many-rows.ts';
import { lockKits } from '../stored/commit-rows.ts';
import { kindOf } from '../stored/losses.ts';
import { alarmOf } from '../stored/plain-rows.ts';
import { evidenceOf } from '../stored/rows.ts';
import type { Change, StoredAlarm } from '../stored/stored.ts';
import { changeOf, writeAlarms } from './alarm-store.ts';
import {
  type AssetEvent,
  assetEventOf,
  conditionsOf,
  type ConditionKind,
  type Evidence,
  observedAt,
  thingOf,
  turnsAt,
} from './conditions.ts';
import { behindMs, type Lag, late_after_ms } from './clock-lag.ts';
import { again_ms, KitAlarms, type OfflineAsset, type Thing, type Transition } from './kit-alarms.ts';

/** While late messages of a kit come, a later one may end what this one reports. */
const drain_ms = 60_000;
/** An alarm that nothing ends, such as a text of a vehicle, ends so long after it happened last. */
export const happening_ms = 3_600_000;
/** A kit is looked at so often even where nothing is known to turn. */
const look_every_ms = 3_600_000;
/** Kits that are looked at in one transaction. */
const kits_at_once = 250;
/** Things of one kit whose newest event is remembered. */
const things_max = 1_000;
/** What a commit brought of a kit. */
export interface KitNews {
  readonly kit_id: string;
  /** New messages on event topics, in their order. */
  readonly events: readonly Message[];
  /** Whether the message came from the buffer of the kit. */
  readonly isHistorical: (message: Message) => boolean;
  /** Late messages of any kind came. */
  readonly hasLate: boolean;
  /** How late live messages come now, where that is not as stored; null: in time again. */
  readonly lag?: Lag | null | undefined;
  /** Something that conditions are made of has changed, beside its assets. */
  readonly isChanged: boolean;
  readonly hasAssets: boolean;
  /** Assets that were removed. */
  readonly gone: readonly string[];
}

/** An event that changed something, for webhooks. */
export interface NewEvent {
  readonly kit_id: string;
  readonly message: Message;
  readonly severity: AlarmSeverity;
  /** It raised no alarm. */
  readonly isLate: boolean;
}

export interface Followed {
  readonly changes: readonly Change[];
  readonly transitions: readonly Transition[];
  readonly events: readonly NewEvent[];
}

/** @param at_ms now, by the clock of the kit as far as that is known to be behind */
export function isLate({ time_ms, unsynced }: Message, at_ms: number, historical: boolean): boolean {
  return historical || (!unsynced && at_ms - time_ms > late_after_ms);
}

/** Runs inside a transaction that has locked the kits, after it stored what they reported. */
export async function followAlarms(
  queries: Queries,
  news: readonly KitNews[],
  now_ms: number,
): Promise<Followed> {
  const late = news.filter(({ hasLate }) => hasLate).map(({ kit_id }) => kit_id);
  await inPortions(
    late,
    async (some) => sql(queries)`UPDATE kits SET late_ms = ${now_ms} WHERE kit_id IN (${listed(some)})`,
  );
  const lags = news.filter(({ lag }) => lag !== undefined);
  await inPortions(lags, async (some) => {
    const rows = some.map(
      ({ kit_id, lag }) =>
        clause`(${kit_id}, CAST(${lag?.lag_ms ?? null} AS BIGINT), CAST(${lag?.since_ms ?? null} AS BIGINT))`,
    );
    return sql(queries)`UPDATE kits SET lag_ms = new.column2, lag_since_ms = new.column3
      FROM (VALUES ${listed(rows)}) AS new WHERE kits.kit_id = new.column1`;
  });
  const relevant = news.filter(
    ({ events, isChanged, hasAssets }) => isChanged || hasAssets || events.length > 0,
  );
  if (relevant.length === 0) return { changes: [], transitions: [], events: [] };
  const known = await readKnown(queries, relevant, now_ms);
  const followed = relevant.map((each) => followKit(each, known(each.kit_id), now_ms));
  await writeAlarms(
    queries,
    followed.flatMap(({ alarms }) => alarms.changed),
  );
  const looks = followed.filter(
    ({ look_ms, things, kit }) => isSooner(look_ms, kit?.look_ms, now_ms) || things !== thingsOf(kit),
  );
  await inPortions(looks, async (some) => {
    const rows = some.map(
      ({ kit_id, look_ms, things }) => clause`(${kit_id}, CAST(${look_ms} AS BIGINT), ${things})`,
    );
    return sql(queries)`UPDATE kits SET look_ms = new.column2, things = new.column3
      FROM (VALUES ${listed(rows)}) AS new WHERE kits.kit_id = new.column1`;
  });
  return {
    changes: followed.flatMap(({ alarms }) => alarms.changed.map(changeOf)),
    transitions: followed.flatMap(({ alarms }) => alarms.transitions),
    events: followed.flatMap(({ events }) => events),
  };
}

/** The row has to be written: what it names is over, or later than what comes next. */
function isSooner(look_ms: number, stored_ms: number | null | undefined, now_ms: number): boolean {
  return stored_ms === undefined || stored_ms === null || stored_ms <= now_ms || look_ms < stored_ms;
}

const followedRow = z.object({
  late_ms: number,
  look_ms: numberOrNull,
  /** As it is stored: see `readThings`. */
  things: textOrNull,
});
type KnownKit = Evidence & z.output<typeof followedRow>;

interface Known {
  /** Undefined: it has reported nothing since the start of a service that keeps it in memory. */
  readonly kit: KnownKit | undefined;
  readonly alarms: readonly StoredAlarm[];
  readonly assets: readonly AssetRow[];
}

const assetRow = z.object({
  asset_id: text,
  status: textOrNull,
  time_ms: numberOrNull,
  data: jsonText.pipe(z.object({ parent_id: z.string().nullish() })),
});
type AssetRow = z.output<typeof assetRow>;

const newestOfThing = z.object({
  epoch: z.number(),
  seq: z.number(),
  time_ms: z.number(),
  edge: z.enum(['begins', 'ends']),
});
type NewestOfThing = z.output<typeof newestOfThing>;

/**
 * The newest event of each thing, by `thingKey`: with replicas the end of a thing may come before its beginning. One is kept while
 * an older one could open or close an alarm.
 */
type Things = Map<string, NewestOfThing>;

function thingsOf(kit: KnownKit | undefined): string | null {
  return kit?.things ?? null;
}

function readThings(text: string | null): Things {
  return new Map(
    text === null ? [] : Object.entries(z.record(z.string(), newestOfThing).parse(JSON.parse(text))),
  );
}

function writeThings(things: Things, alarms: KitAlarms, at_ms: number): string | null {
  const open = new Set(alarms.open.map(thingKey));
  const kept = [...things]
    .filter(([key, { time_ms }]) => at_ms - time_ms <= late_after_ms || open.has(key))
    .sort(([, a], [, b]) => a.epoch - b.epoch || a.seq - b.seq)
    .slice(-things_max);
  return kept.length === 0 ? null : JSON.stringify(Object.fromEntries(kept));
}

/** Says nothing of what the kit reported: an erasure need not find it. */
function thingKey({ what, thing }: Thing): string {
  return createHash('sha256').update(`${what} ${thing}`).digest('base64url').slice(0, 16);
}

/** The statements need not wait for each other. */
async function readKnown(
  queries: Queries,
  news: readonly KitNews[],
  now_ms: number,
): Promise<(kit_id: string) => Known> {
  const of = async (kits: readonly KitNews[], ask: (ids: Clause) => Promise<readonly Row[]>) => {
    const rows = await inPortions(kits, async (some) => ask(listed(some.map(({ kit_id }) => kit_id))));
    const byKit = Map.groupBy(rows, (row) => String(row['kit_id']));
    return (kit_id: string): readonly Row[] => byKit.get(kit_id) ?? [];
  };
  const asking = [
    of(news, async (ids) => sql(queries)`SELECT * FROM kits WHERE kit_id IN (${ids})`),
    of(
      news,
      async (ids) => sql(queries)`SELECT kit_id, part, data, time_ms, epoch FROM kit_parts
        WHERE kit_id IN (${ids}) AND part IN ('wans', 'battery', 'battery_charging', 'location')`,
    ),
    of(
      news,
      async (ids) => sql(queries)`SELECT * FROM alarms WHERE kit_id IN (${ids}) AND (closed_ms IS NULL
          OR changed_ms > ${now_ms - again_ms - late_after_ms} OR muted_until_ms > ${now_ms})
        ORDER BY since_ms DESC, alarm_id`,
    ),
    of(
      news.filter(({ hasAssets }) => hasAssets),
      async (ids) => sql(queries)`SELECT assets.kit_id, assets.asset_id, asset_status.status,
          asset_status.time_ms, assets.data FROM assets
        LEFT JOIN asset_status ON asset_status.kit_id = assets.kit_id AND asset_status.asset_id = assets.asset_id
        WHERE assets.kit_id IN (${ids}) AND gone = 0 AND (asset_status.status = 'offline' OR EXISTS (SELECT 1
          FROM alarms WHERE alarms.kit_id = assets.kit_id AND what = 'asset' AND closed_ms IS NULL
            AND alarms.assets LIKE '%' || assets.asset_id || '%'))`,
    ),
  ] as const;
  await allSettled<unknown>(asking);
  const [kitsOf, partsOf, alarmsOf, assetsOf] = await Promise.all(asking);
  return (kit_id) => {
    const [row] = kitsOf(kit_id);
    return {
      kit: row && knownKit(row, partsOf(kit_id)),
      alarms: alarmsOf(kit_id).map(alarmOf),
      assets: assetsOf(kit_id).map((asset) => assetRow.parse(asset)),
    };
  };
}

function knownKit(row: Row, parts: readonly Row[]): KnownKit {
  return { ...evidenceOf(row, parts), ...followedRow.parse(row) };
}

function followKit(news: KitNews, { kit, alarms: stored, assets }: Known, now_ms: number) {
  const { kit_id, isChanged, hasAssets } = news;
  const alarms = new KitAlarms(kit_id, stored, now_ms);
  const known = thingsOf(kit);
  const things = readThings(known);
  const at_ms = now_ms - behindMs(kit?.lag, now_ms);
  const events = followEvents(alarms, news, { things, now_ms, at_ms });
  alarms.endDue();
  alarms.endOfGone(news.gone, now_ms);
  alarms.endMutes();
  const drained_ms = (kit?.late_ms ?? 0) + drain_ms;
  /** An observation that a later one may take back, which is on its way. */
  const isPassing = (time_ms: number): boolean => drained_ms > now_ms && at_ms - time_ms > late_after_ms;
  if (kit && isChanged) followConditions(alarms, kit, { isPassing, now_ms });
  if (kit && hasAssets && isOnline(kit, now_ms)) followAssets(alarms, assets, { isPassing, now_ms });
  const turns = kit ? [turnsAt(kit, now_ms) ?? Infinity, drained_ms] : [];
  const ends = alarms.open.map(({ ends_ms }) => ends_ms ?? Infinity);
  const mutes = alarms.open.map(({ muted_until_ms }) => muted_until_ms ?? Infinity);
  const to_come = [...turns, ...ends, ...mutes].filter((turn_ms) => turn_ms > now_ms);
  return {
    kit_id,
    kit,
    alarms,
    events,
    things: news.events.length === 0 ? known : writeThings(things, alarms, at_ms),
    look_ms: Math.min(now_ms + look_every_ms, ...to_come),
  };
}

interface Around {
  readonly isPassing: (time_ms: number) => boolean;
  readonly now_ms: number;
}

function followAssets(alarms: KitAlarms, assets: readonly AssetRow[], { isPassing, now_ms }: Around): void {
  const byId = new Map(assets.map((asset) => [asset.asset_id, asset]));
  const timeOf = ({ time_ms }: AssetRow): number => Math.min(time_ms ?? now_ms, now_ms);
  const offline = assets
    .filter(({ status }) => status === 'offline')
    .map((asset): OfflineAsset => {
      const { asset_id, data } = asset;
      return { asset_id, parent_id: data.parent_id ?? null, time_ms: timeOf(asset) };
    });
  alarms.followAssets(offline, {
    mayBegin: ({ time_ms }) => !isPassing(time_ms),
    backAt: (id) => {
      const asset = byId.get(id);
      if (asset?.status === null) return undefined;
      // Of one that was removed nothing is left.
      return asset ? timeOf(asset) : now_ms;
    },
  });
}

function followConditions(alarms: KitAlarms, kit: Evidence, { isPassing, now_ms }: Around): void {
  const found = new Set<string>();
  const battery = alarms.open.find(({ what }) => what === 'battery')?.severity;
  for (const condition of conditionsOf(kit, now_ms, battery)) {
    const { what, severity: level, subject, value } = condition;
    const thing = thingOf(condition);
    found.add(`${what} ${thing}`);
    const observed_ms = observedAt(what, kit, now_ms);
    if (observed_ms === undefined) continue;
    const time_ms = Math.min(observed_ms, now_ms);
    if (isPassing(time_ms) && !alarms.openOf({ what, thing })) continue;
    alarms.begin({ what, thing, severity: level, subject, value, time_ms });
  }
  for (const alarm of alarms.open) {
    const what = condition_kinds.find((each) => each === alarm.what);
    if (what === undefined || found.has(`${what} ${alarm.thing}`)) continue;
    const observed_ms = observedAt(what, kit, now_ms);
    if (observed_ms !== undefined) alarms.end(alarm, Math.min(observed_ms, now_ms));
  }
}

const condition_kinds: readonly Exclude<ConditionKind, 'asset'>[] = [
  'offline',
  'degraded',
  'battery',
  'fix',
  'link',
  'queue',
  'dropped',
  'refused',
];

interface Following {
  readonly things: Things;
  readonly now_ms: number;
  /** By the clock of the kit. */
  readonly at_ms: number;
}

/** Applies events in their order. Returns those that changed something, and late ones. */
function followEvents(
  alarms: KitAlarms,
  { kit_id, events, isHistorical }: KitNews,
  { things, now_ms, at_ms }: Following,
): readonly NewEvent[] {
  const found: NewEvent[] = [];
  for (const message of events) {
    const { channel, data, epoch, seq } = message;
    if (channel.kind !== 'event') continue;
    const { asset_id, feed } = channel;
    const event = assetEventOf(feed, data);
    if (!event) continue;
    const late = isLate(message, at_ms, isHistorical(message));
    const about = thingOfEvent(asset_id, event);
    const key = thingKey(about);
    const newest = things.get(key);
    const overtaken = newest && isNewer(newest, message) ? newest : undefined;
    const { edge } = event;
    if (edge !== 'happens' && !overtaken)
      things.set(key, { epoch, seq, edge, time_ms: notAheadMs(message, now_ms) });
    const isTold = alarms.isTold(about, edge === 'ends');
    const severity = alarms.severityOf(about, event);
    const isNews = followEvent(alarms, { message, event, asset_id, late, overtaken, now_ms });
    if ((isNews || late) && isTold) found.push({ kit_id, message, severity, isLate: late });
  }
  return found;
}

interface Observed {
  readonly message: Message;
  readonly event: AssetEvent;
  readonly asset_id: string;
  readonly late: boolean;
  /** A newer one of the same thing that came in an earlier commit: it stands for the state of now. */
  readonly overtaken: NewestOfThing | undefined;
  readonly now_ms: number;
}

function thingOfEvent(asset_id: string, { what, subject }: AssetEvent): Thing {
  return { what, thing: subject === undefined ? asset_id : kindOf({ what: asset_id, reason: subject }) };
}

/** A clock that is ahead, or not set, dates nothing. */
function notAheadMs({ unsynced, time_ms }: Message, now_ms: number): number {
  return unsynced ? now_ms : Math.min(time_ms, now_ms);
}

/** Returns whether it changed something. */
function followEvent(alarms: KitAlarms, observed: Observed): boolean {
  const { message, event, asset_id, late, overtaken, now_ms } = observed;
  const about = thingOfEvent(asset_id, event);
  const time_ms = notAheadMs(message, now_ms);
  if (event.edge === 'ends') return overtaken === undefined && alarms.endOf(about, time_ms);
  // Of a beginning that was overtaken by its end nothing is left but that it was.
  const isOver = overtaken?.edge === 'ends';
  const isIdle = overtaken !== undefined && !isOver && event.edge === 'begins';
  if (late || isIdle) return false;
  const isNews = alarms.begin({
    ...about,
    severity: event.severity,
    subject: event.subject,
    assets: [asset_id],
    time_ms,
    message: jsonObject.parse(message.data),
    ends_ms: event.edge === 'happens' ? now_ms + happening_ms : null,
  });
  if (isOver && isNews) alarms.endOf(about, overtaken.time_ms);
  return isNews;
}

function isDue(now_ms: number): Clause {
  return clause`COALESCE(look_ms, 0) <= CAST(${now_ms} AS BIGINT)`;
}

/** Asked often, and mostly there is none: a question takes no lock. */
export async function hasAlarmsToLookAt(queries: Queries, now_ms: number): Promise<boolean> {
  return (await sql(queries)`SELECT 1 AS here FROM kits WHERE ${isDue(now_ms)} LIMIT 1`).length > 0;
}

/** Kits whose conditions may have changed with time alone. Looks at some of them, and returns what came of it. */
export async function lookAtAlarms(queries: Queries, now_ms: number): Promise<Followed> {
  const rows = await sql(queries)`SELECT kit_id FROM kits WHERE ${isDue(now_ms)}
    ORDER BY kit_id LIMIT ${kits_at_once}`;
  const ids = rows.map(({ kit_id }) => String(kit_id));
  if (ids.length === 0) return { changes: [], transitions: [], events: [] };
  await lockKits(queries, ids);
  const nothing = {
    events: [],
    isHistorical: () => false,
    hasLate: false,
    isChanged: true,
    hasAssets: true,
    gone: [],
  };
  return followAlarms(
    queries,
    ids.map((kit_id) => Object.assign({ kit_id }, nothing)),
    now_ms,
  );
}
