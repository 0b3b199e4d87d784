/** Converts stored values into the resources of the API. Pure functions. */
import { z } from 'zod';
import type { CommandDefinition } from '../../contract/assets.ts';
import { type Location, kitTelemetry, linkType } from '../../contract/kit.ts';
import type { AlarmResource, AlarmState } from './alarm-resources.ts';
import {
  clientResource,
  gatewayResource,
  locationResource,
  type LocationResource,
  partOf,
  speedtestResource,
  wanOf,
  type WanResource,
} from './kit-resources.ts';
import {
  type AssetDetails,
  type AssetResource,
  type CommandResource,
  type CreatedAsset,
  interfaceProtocol,
  type KitResource,
  type KitTelemetrySnapshot,
  type QueueResource,
  type TaskResource,
} from './resources.ts';
import { type Loss, type Losses, no_losses } from '../stored/losses.ts';
import type { StoredAlarm, StoredAsset, StoredKit, StoredTask } from '../stored/stored.ts';

/**
 * A kit without a message for this long is offline, whatever its presence at the broker. Kits send at least one message
 * per telemetry floor, which is at most an hour (`telemetry.floor_s`); mostly the broker detects a lost kit within a minute.
 */
export const silent_after_ms = 3_600_000 + 300_000;
/** How often a kit without a message is looked at again. */
const look_again_ms = 60_000;
/** A fix older than this is stale (interface, Limits). */
const stale_after_ms = 30_000;

export function isOnline(kit: Pick<StoredKit, 'state' | 'heard_ms' | 'vouched_ms'>, now_ms: number): boolean {
  const present_ms = Math.max(kit.heard_ms ?? 0, kit.vouched_ms ?? 0);
  return kit.state?.online === true && now_ms - present_ms < silent_after_ms;
}

/** Returns when the view of the kit changes without a new message: it times out, or, offline, its fix becomes stale. Undefined: never. */
export function turnsAt(
  kit: {
    readonly online: boolean;
    readonly last_seen: string | null;
    readonly location?: LocationResource | undefined;
    readonly times: Readonly<Record<string, string>>;
  },
  now_ms: number,
): number | undefined {
  const { online, last_seen, location, times } = kit;
  const turns: number[] = [];
  if (online && last_seen !== null) {
    const silent_ms = Date.parse(last_seen) + silent_after_ms;
    // A kit that the broker vouches for is online though it was last seen long ago.
    turns.push(silent_ms > now_ms ? silent_ms : now_ms + look_again_ms);
  }
  const fix = times['location'];
  const canAge = !online && location !== undefined && !location.stale && location.source !== 'manual';
  if (canAge && fix !== undefined) turns.push(Date.parse(fix) + stale_after_ms + 1);
  return turns.length === 0 ? undefined : Math.min(...turns);
}

/** Returns since when the kit is online or offline. A kit that timed out is offline since its last message. */
function sinceOf(kit: StoredKit, now_ms: number): number | null {
  return kit.state?.online === true && !isOnline(kit, now_ms) ? kit.heard_ms : kit.since_ms;
}

/** A kit of a key that has reported nothing yet. */
export function unreportedKit(kit_id: string): StoredKit {
  const counts = { received: 0, duplicates: 0, missing: 0, dropped: 0, refused: 0 };
  const never = { heard_ms: null, vouched_ms: null, since_ms: null };
  return { kit_id, state: undefined, ...never, parts: {}, counts, losses: no_losses };
}

type Reported = Pick<StoredKit, 'kit_id' | 'label' | 'state' | 'heard_ms' | 'vouched_ms' | 'parts'>;

/** What operators call it, else what it calls itself. */
function labelOf(
  { kit_id, label, state }: Reported,
  gateway: string | undefined,
): Pick<KitResource, 'name' | 'tags' | 'time_zone'> {
  const name = label?.name ?? state?.name ?? gateway ?? kit_id;
  return {
    name,
    ...(label && label.tags.length > 0 && { tags: [...label.tags] }),
    ...(label?.time_zone && { time_zone: label.time_zone }),
  };
}

/** Without the summary, which needs the kit's assets. */
export function kitResource(kit: Reported, now_ms: number): Omit<KitResource, 'summary'> {
  const { wans, battery, battery_charging, location, gateway } = telemetryOf(kit, now_ms);
  const reported = Object.keys(kit.parts).length > 0;
  const parts = { ...(location && { location }), ...(gateway && { gateway }) };
  return {
    id: kit.kit_id,
    ...labelOf(kit, gateway?.name),
    online: isOnline(kit, now_ms),
    ...(kit.heard_ms !== null && { last_seen: iso(kit.heard_ms) }),
    live: reported ? { wans, battery, battery_charging, ...parts } : null,
  };
}

export function telemetrySnapshot(kit: Reported, now_ms: number): KitTelemetrySnapshot {
  const { id, name, online } = kitResource(kit, now_ms);
  return { online, kit_id: id, kit_name: name, ...telemetryOf(kit, now_ms) };
}

type Telemetry = Omit<KitTelemetrySnapshot, 'online' | 'kit_id' | 'kit_name'>;

/** Without what an online kit has not reported since its restart, though it reports everything once in an hour: its source is gone. */
function currentParts({ parts, ...kit }: Reported, now_ms: number) {
  const all = Object.entries(parts);
  if (!isOnline(kit, now_ms)) return all;
  const newest_epoch = Math.max(0, ...all.map(([, { epoch = 0 }]) => epoch));
  const of_run = all.filter(([, { epoch = 0 }]) => epoch === newest_epoch);
  const newest_ms = Math.max(...of_run.map(([, { time_ms }]) => time_ms));
  // A measurement of the link is not repeated.
  return all.filter(
    ([name, { epoch = 0, time_ms }]) =>
      epoch === newest_epoch || name === 'speedtest' || newest_ms - time_ms <= silent_after_ms,
  );
}

/** Returns the reported parts; the location of a kit that is offline becomes stale with time. */
function telemetryOf(kit: Reported, now_ms: number): Telemetry {
  const values = Object.fromEntries(currentParts(kit, now_ms).map(([part, { data }]) => [part, data]));
  const { location, wans, battery, battery_charging, gateway, clients, speedtest } =
    kitTelemetry.parse(values);
  return {
    wans: (wans ?? []).map(wanOf),
    battery: battery ?? null,
    battery_charging: battery_charging ?? null,
    clients: (clients ?? []).map((client) => partOf(clientResource, client)),
    ...(gateway && { gateway: partOf(gatewayResource, gateway) }),
    ...(speedtest && { speedtest: partOf(speedtestResource, speedtest) }),
    ...(location && { location: partOf(locationResource, aged(location, kit, now_ms)) }),
  };
}

/** An online kit says at once when its fix becomes stale, and repeats nothing while it stands still: until then the fix is as it said. */
function aged(location: Location, kit: Reported, now_ms: number): Location {
  const time_ms = kit.parts['location']?.time_ms ?? 0;
  if (location.source === 'manual' || isOnline(kit, now_ms) || now_ms - time_ms <= stale_after_ms)
    return location;
  const source = location.source === 'satellite' ? ('satellite_cached' as const) : location.source;
  return { ...location, source, stale: true };
}

const status_order = ['online', 'standby', 'offline'] as const;

/** The link of this name; else of this type, the one in use first. Case does not matter. */
export function findLink(wans: readonly WanResource[], wanted: string): WanResource | undefined {
  const name = wanted.toLowerCase();
  const named =
    wans.find((link) => link.name === wanted) ?? wans.find((link) => link.name.toLowerCase() === name);
  if (named || !linkType.safeParse(name).success) return named;
  const rank = (link: WanResource): number => status_order.indexOf(link.status ?? 'offline');
  return wans.filter(({ type }) => type === name).sort((a, b) => rank(a) - rank(b))[0];
}

/** The queue fields of a kit without a state report. */
const not_reported = {
  reason: null,
  software: null,
  as_of: null,
  waiting_rows: null,
  waiting_bytes: null,
  oldest: null,
  degraded: [],
} as const;

export function queueResource(kit: StoredKit, now_ms: number): QueueResource {
  const reported = kit.state ? queueFields(kit.state) : not_reported;
  return {
    online: isOnline(kit, now_ms),
    since: isoOrNull(sinceOf(kit, now_ms)),
    ...reported,
    ...kit.counts,
    ...lossFields(kit.losses),
    degraded: [...reported.degraded],
  };
}

function lossFields({ refused, dropped }: Losses): Pick<QueueResource, 'refused_last' | 'dropped_last'> {
  const timesOf = ({ time_ms, since_ms }: Loss) => ({ time: iso(time_ms), since: iso(since_ms) });
  return {
    refused_last: refused.map((loss) => {
      const { what: channel, reason, count } = loss;
      return { ...timesOf(loss), channel, reason, count };
    }),
    dropped_last: dropped.map((loss) => {
      const { what: lane, reason, count } = loss;
      return { ...timesOf(loss), lane, reason, count };
    }),
  };
}

function queueFields({ reason, software, outbox, degraded, said_ms }: NonNullable<StoredKit['state']>) {
  const { rows, bytes, oldest } = outbox;
  const as_of = isoOrNull(said_ms ?? null);
  return { reason, software, as_of, waiting_rows: rows, waiting_bytes: bytes, oldest, degraded };
}

export function assetResource(asset: StoredAsset): AssetResource {
  const { id, asset_key, name, type, vendor, model, protocol, status, last_seen_at, parent_id } = asset;
  const { lat, lon, whep_url, health } = asset;
  return {
    id,
    asset_key,
    name,
    type,
    vendor,
    model,
    protocol: protocolOf({ type, protocol }),
    status,
    last_seen_at,
    parent_id,
    lat,
    lon,
    whep_url,
    ...(health && status === 'online' && { health }),
  };
}

/** Whether it is online and fails to deliver something. */
export function isDegraded({ status, health = {} }: Pick<StoredAsset, 'status' | 'health'>): boolean {
  return status === 'online' && Object.values(health).some((each) => each?.state === 'fails');
}

/**
 * The protocol of the interface. For a protocol that it lacks, such as `gateway`, it is that of the connector for assets of
 * this type, since clients may reject a whole list for one unknown word: a vendor's protocol, and never `partner`, which would
 * allow Push Location.
 */
function protocolOf({ type, protocol }: Pick<StoredAsset, 'type' | 'protocol'>): AssetResource['protocol'] {
  const { data } = interfaceProtocol.safeParse(protocol);
  if (data) return data;
  if (type === 'camera') return 'vendorcam';
  return type === 'drone' ? 'mavlink' : 'vendorradio';
}

/** As Get Asset shows it: with the metadata of a partner asset. */
export function assetDetails(asset: StoredAsset): AssetDetails {
  return { ...assetResource(asset), ...(asset.protocol === 'partner' && { metadata: asset.metadata }) };
}

/** As List Assets shows it: the interface has no vendor of partner assets there. */
export function listedAsset(asset: StoredAsset): AssetResource {
  return { ...assetResource(asset), vendor: asset.protocol === 'partner' ? null : asset.vendor };
}

/** The fields that the interface has. */
export function commandResource(definition: CommandDefinition): CommandResource {
  const { id, name, description, risk_level, requires_approval, input_schema } = definition;
  return { id, name, description, risk_level, requires_approval, input_schema };
}

/** The order of List Assets: by type, then by name. */
export function byType(a: StoredAsset, b: StoredAsset): number {
  return compare(a.type, b.type) || compare(a.name, b.name) || compare(a.id, b.id);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

export function createdAsset(kit_id: string, asset: StoredAsset): CreatedAsset {
  const { id, asset_key, name, type, vendor, model, metadata, last_seen_at, parent_id } = asset;
  return {
    id,
    asset_key,
    kit_id,
    name,
    type,
    vendor,
    model,
    protocol: 'partner',
    metadata,
    status: 'online',
    last_seen_at,
    parent_id,
  };
}

export function taskResource(task: StoredTask): TaskResource {
  const { task_id, asset_id, command_name, payload, status, result, progress } = task;
  const { requested_by, requested_by_name } = task;
  return {
    id: task_id,
    asset_id,
    command_name,
    ...(payload && { payload }),
    status,
    result,
    ...(requested_by !== null && { requested_by }),
    ...(requested_by_name !== null && { requested_by_name }),
    created_at: iso(task.created_ms),
    updated_at: iso(task.updated_ms),
    ...(status === 'running' && progress && { progress: withoutNull(progress) }),
  };
}

function withoutNull({ message, pct }: NonNullable<StoredTask['progress']>): TaskResource['progress'] {
  return { message, ...(pct !== null && { pct }) };
}

/** What its state is at this time. */
function alarmStateOf(
  { closed_ms, muted_until_ms, acknowledged_ms }: StoredAlarm,
  now_ms: number,
): AlarmState {
  if (closed_ms !== null) return 'closed';
  if ((muted_until_ms ?? 0) > now_ms) return 'muted';
  return acknowledged_ms === null ? 'open' : 'acknowledged';
}

/** Of an alarm of assets that are offline: those that are not any more. It has no event whose data it could have. */
export function backOf({ what, message }: Pick<StoredAlarm, 'what' | 'message'>): readonly string[] {
  return z
    .array(z.string())
    .catch([])
    .parse(what === 'asset' && message?.['back']);
}

/** Of an alarm of assets: those that are back; else the newest event. */
function dataOf(stored: StoredAlarm): Pick<AlarmResource, 'back' | 'message'> {
  const { what, message } = stored;
  if (!message) return {};
  return what === 'asset' ? { back: [...backOf(stored)] } : { message };
}

export function alarmResource(stored: StoredAlarm, now_ms: number): AlarmResource {
  const { kit_id, alarm_id, what, subject, assets, severity: level, since_ms, last_ms, count } = stored;
  const { closed_ms, value, acknowledged_by, acknowledged_ms, muted_until_ms, note, files } = stored;
  return {
    id: alarm_id,
    kit_id,
    what,
    ...(subject !== null && { subject }),
    assets: [...assets],
    severity: level,
    state: alarmStateOf(stored, now_ms),
    since: iso(since_ms),
    last: iso(last_ms),
    count,
    ...(closed_ms !== null && { closed_at: iso(closed_ms) }),
    ...(value !== null && { value }),
    ...dataOf(stored),
    ...(acknowledged_by !== null &&
      acknowledged_ms !== null && { acknowledged: { by: acknowledged_by, at: iso(acknowledged_ms) } }),
    ...((muted_until_ms ?? 0) > now_ms && { muted_until: iso(muted_until_ms ?? 0) }),
    ...(note !== null && { note }),
    ...(files.length > 0 && { files: [...files] }),
  };
}

export function iso(time_ms: number): string {
  return new Date(time_ms).toISOString();
}

function isoOrNull(time_ms: number | null): string | null {
  return time_ms === null ? null : iso(time_ms);
}
