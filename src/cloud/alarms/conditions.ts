/**
 * What is wrong with a kit: conditions, which last as long as what the kit reported says so, and events of its assets. Both the
 * summary of a kit and its alarms are made of them.
 */
import { type Json, type JsonObject, jsonObject } from '../../contract/json.ts';
import type { AlarmSeverity } from '../severity.ts';
import { isOnline, silent_after_ms, telemetrySnapshot } from '../api/views.ts';
import { kindOf, lostLately } from '../stored/losses.ts';
import type { StoredKit } from '../stored/stored.ts';
import { behindMs } from './clock-lag.ts';
import { day_ms } from '../../platform/time.ts';

const battery_low_pct = 20;
const battery_critical_pct = 10;
/** An alarm of a charge lasts, and stays as grave, until the charge is so much above its limit: it wavers. */
const battery_margin_pct = 5;
/** A backlog of fewer messages is reported only when it is old. */
const waiting_reported_min = 100;
const waiting_age_reported_min_ms = 60_000;
/** Sentences of degraded conditions. */
const degraded_max = 8;

export type ConditionKind =
  | 'offline'
  | 'degraded'
  | 'battery'
  | 'fix'
  | 'link'
  | 'asset'
  | 'queue'
  | 'dropped'
  | 'refused';

export interface Condition {
  readonly what: ConditionKind;
  readonly severity: AlarmSeverity;
  /** Name of the link, or the degraded condition. */
  readonly subject?: string;
  readonly value?: number;
}

/** What conditions are made of. */
export type Evidence = Pick<
  StoredKit,
  'kit_id' | 'state' | 'heard_ms' | 'vouched_ms' | 'since_ms' | 'parts' | 'losses' | 'lag'
>;

/**
 * Conditions of the kit itself. Those of an offline kit are not known beside what was said of its battery. `battery`: the severity of
 * its open alarm of the battery.
 */
export function conditionsOf(kit: Evidence, now_ms: number, battery?: AlarmSeverity): readonly Condition[] {
  const charge = ofBattery(kit, now_ms, battery);
  const conditions = isOnline(kit, now_ms)
    ? [...charge, ...ofOnline(kit, now_ms), ...ofQueue(kit, now_ms)]
    : [{ what: 'offline', severity: 'critical' } as const, ...charge];
  for (const what of ['dropped', 'refused'] as const) {
    const value = lostLately(kit.losses[what], now_ms);
    if (value > 0) conditions.push({ what, severity: 'warning', value });
  }
  return conditions;
}

function ofBattery(kit: Evidence, now_ms: number, before: AlarmSeverity | undefined): Condition[] {
  const { battery, battery_charging } = telemetrySnapshot(kit, now_ms);
  const low_pct = battery_low_pct + (before === undefined ? 0 : battery_margin_pct);
  const critical_pct = battery_critical_pct + (before === 'critical' ? battery_margin_pct : 0);
  if (battery === null || battery > low_pct || battery_charging === true) return [];
  const severity = battery <= critical_pct ? 'critical' : 'warning';
  return [{ what: 'battery', severity, value: battery }];
}

function ofOnline(kit: Evidence, now_ms: number): Condition[] {
  const { location, wans } = telemetrySnapshot(kit, now_ms);
  const degraded = kit.state?.degraded.slice(0, degraded_max) ?? [];
  const offline = wans.filter(({ status }) => status === 'offline');
  return [
    ...degraded.map((subject) => ({ what: 'degraded', severity: 'warning', subject }) as const),
    ...(location?.stale ? [{ what: 'fix', severity: 'warning' } as const] : []),
    ...offline.map(({ name }) => ({ what: 'link', severity: 'warning', subject: name }) as const),
  ];
}

function ofQueue({ state, lag }: Evidence, now_ms: number): Condition[] {
  const { rows = 0, oldest = null } = state?.outbox ?? {};
  const age_ms = oldest === null ? 0 : now_ms - behindMs(lag, now_ms) - Date.parse(oldest);
  const isLong = rows >= waiting_reported_min || age_ms > waiting_age_reported_min_ms;
  return rows > 0 && isLong ? [{ what: 'queue', severity: 'warning', value: rows }] : [];
}

/** Two sentences that differ in their numbers only are about the same. */
export function thingOf({ what, subject = '' }: Pick<Condition, 'what' | 'subject'>): string {
  return what === 'degraded' ? kindOf({ what: '', reason: subject }) : subject;
}

/**
 * When what an alarm of this kind is made of was observed: that of the newest report. Undefined: nothing was reported, so the
 * alarm neither begins nor ends.
 */
export function observedAt(what: ConditionKind, kit: Evidence, now_ms: number): number | undefined {
  if (what === 'dropped' || what === 'refused') return kit.losses[what][0]?.time_ms ?? now_ms;
  if (what === 'offline') return presentAt(kit, now_ms);
  if (!isOnline(kit, now_ms)) return undefined;
  const part = part_of[what];
  return part === undefined ? (kit.state?.said_ms ?? now_ms) : kit.parts[part]?.time_ms;
}

const part_of: Readonly<Partial<Record<ConditionKind, string>>> = {
  battery: 'battery',
  fix: 'location',
  link: 'wans',
};

/** When it went offline, or was heard last: a silent kit is offline since then. */
function presentAt({ state, since_ms, heard_ms }: Evidence, now_ms: number): number | undefined {
  return state && ((state.online ? heard_ms : since_ms) ?? now_ms);
}

/** When a condition may begin or end without a message. Undefined: never. */
export function turnsAt(kit: Evidence, now_ms: number): number | undefined {
  const { state, losses, heard_ms, vouched_ms, lag } = kit;
  const oldest = state?.outbox.oldest ?? null;
  const silent_ms = Math.max(heard_ms ?? 0, vouched_ms ?? 0) + silent_after_ms;
  const turns = [
    ...(state?.online === true ? [silent_ms] : []),
    ...(oldest === null
      ? []
      : [Date.parse(oldest) + behindMs(lag, now_ms) + waiting_age_reported_min_ms + 1]),
    ...[...losses.dropped, ...losses.refused].map(({ time_ms }) => time_ms + day_ms),
  ].filter((turn_ms) => turn_ms > now_ms);
  return turns.length === 0 ? undefined : Math.min(...turns);
}

/** An event of an asset as a part of an alarm. */
export interface AssetEvent {
  readonly what: string;
  /** `happens`: nothing ends it, such as a text of a vehicle. */
  readonly edge: 'begins' | 'ends' | 'happens';
  readonly severity: AlarmSeverity;
  /** What of the asset it is about, where it names it. */
  readonly subject?: string | undefined;
}

const severity_of_feed: Readonly<Record<string, AlarmSeverity>> = {
  motion: 'info',
  doorbell: 'info',
  sound: 'info',
  tamper: 'critical',
};
/** What an event itself says: the words of vehicles, and the states of a data cap. */
const severity_of_word: Readonly<Record<string, AlarmSeverity>> = {
  emergency: 'critical',
  alert: 'critical',
  critical: 'critical',
  exceeded: 'critical',
  error: 'warning',
  warning: 'warning',
  notice: 'info',
  info: 'info',
  debug: 'info',
  forecast: 'info',
};

/** States that are reported as events, again and again; those of assets and links are conditions. */
export const heartbeats: ReadonlySet<string> = new Set(['status', 'asset_status', 'link_status']);

/** Reads an event; undefined: it is a report of a state, which comes again and again. */
export function assetEventOf(feed: string, data: Json): AssetEvent | undefined {
  const read = jsonObject.safeParse(data).data;
  if (heartbeats.has(feed) || !read) return undefined;
  const { name, text } = read;
  const subject = [name, text].find((each) => typeof each === 'string');
  return { what: feed, edge: edgeOf(read), severity: severityOf(feed, read), subject };
}

/** A data cap has a state, what is seen or heard is detected or not. */
function edgeOf({ detected, state }: JsonObject): AssetEvent['edge'] {
  if (typeof detected === 'boolean') return detected ? 'begins' : 'ends';
  if (typeof state === 'string') return state === 'ok' ? 'ends' : 'begins';
  return 'happens';
}

function severityOf(feed: string, { severity, state }: JsonObject): AlarmSeverity {
  const word = [severity, state].find((each) => typeof each === 'string') ?? '';
  return severity_of_word[word] ?? severity_of_feed[feed] ?? 'warning';
}
