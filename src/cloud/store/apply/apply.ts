/** Stores one message of a kit: the newest values by stamp, tasks by revision. */
import { z } from 'zod';
import { announcement, assetStatus, commandList, roster } from '../../../contract/assets.ts';
import { type DropReport, dropReport } from '../../../contract/drops.ts';
import { firstFault } from '../../../contract/first-fault.ts';
import { json } from '../../../contract/json.ts';
import { partnerRecord } from '../../../contract/partners.ts';
import { connection_lost, isOfConnection, type KitState, kitState } from '../../../contract/presence.ts';
import { noteHoles } from '../../history/holes.ts';
import { readLenient } from '../../lenient.ts';
import type { Message } from '../../read-message.ts';
import { feeds_of_kit_max } from './apply-feeds.ts';
import { applyTask } from '../tasks.ts';
import { applyFile } from '../../files/file-store.ts';
import { type Place, type Put, putNewest } from './newest.ts';
import { type News, noteLosses } from '../../stored/losses.ts';
import { takePartner } from '../partners.ts';
import { jsonOf, stateOf } from '../../stored/rows.ts';
import { sql, type Queries, type Row } from '../../sql/database.ts';
import type { Change, StoredKit, Arrival, Applied } from '../../stored/stored.ts';
import { texts } from '../../texts.ts';

/** Limits of one kit; a connector announces at most 768 assets, and partners add theirs. */
export const kit_limits = { assets: 1_024, feeds: feeds_of_kit_max } as const;

/** Types and protocols of a later minor version are carried as they are. */
const openAnnouncement = announcement.extend({ type: z.string().min(1), protocol: z.string().min(1) });
const statusEdge = z.looseObject({ status: assetStatus, reason: z.string().nullish() });

/** Applies a new message: the caller has checked its epoch and seq. */
export async function applyMessage(queries: Queries, arrival: Arrival): Promise<Applied> {
  const { channel, refused } = arrival.message;
  if (refused !== undefined) return { fault: refused };
  if ('feed' in channel) return applyEvent(queries, arrival, channel);
  if ('asset_id' in channel) return announced[channel.kind](queries, arrival, channel.asset_id);
  if ('task_id' in channel) return applyTask(queries, arrival, channel.task_id);
  if ('file_id' in channel) return applyFile(queries, arrival, channel.file_id);
  if (channel.kind === 'drops') return applyDrops(queries, arrival);
  return channel.kind === 'roster' ? applyRoster(queries, arrival) : { fault: texts.not_separate };
}

async function applyAsset(queries: Queries, arrival: Arrival, asset_id: string): Promise<Applied> {
  const { kit_id, message } = arrival;
  const place: Place = { table: 'assets', key: { kit_id, asset_id }, rows_max: kit_limits.assets };
  if (message.data === null) {
    const put = await putNewest(queries, place, { data: '{}', gone: 1 }, message);
    return put === 'stored' ? [{ kind: 'asset_gone', kit_id, asset_id }] : [];
  }
  const read = readLenient(openAnnouncement, message.data);
  if ('fault' in read) return read;
  if (read.data.id !== asset_id) return { fault: texts.other_id('id', read.data.id) };
  if (await isRemovedByRoster(queries, arrival, asset_id)) return [];
  const put = await putNewest(queries, place, { data: JSON.stringify(read.data), gone: 0 }, message);
  const { status, status_reason } = read.data;
  await applyStatus(queries, arrival, { asset_id, status, reason: status_reason });
  return appliedOf(put, { kind: 'asset', kit_id, asset_id });
}

function appliedOf(put: Put, change: Change): Applied {
  if (put === 'full') return { fault: texts.too_many_assets(kit_limits.assets) };
  return put === 'stored' ? [change] : [];
}

async function applyCommands(queries: Queries, arrival: Arrival, asset_id: string): Promise<Applied> {
  const { kit_id, message } = arrival;
  const read = readLenient(commandList, message.data ?? { revision: 1, commands: [] });
  if ('fault' in read) return read;
  const place: Place = { table: 'commands', key: { kit_id, asset_id }, rows_max: kit_limits.assets };
  const put = await putNewest(queries, place, { data: JSON.stringify(read.data.commands) }, message);
  return appliedOf(put, { kind: 'commands', kit_id, asset_id });
}

/** A link event is not stored here: the telemetry of the kit contains the state. Other feeds: `apply-feeds.ts`. */
async function applyEvent(
  queries: Queries,
  arrival: Arrival,
  { asset_id, feed }: { readonly asset_id: string; readonly feed: string },
): Promise<Applied> {
  if (feed !== 'asset_status') return [];
  const edge = statusEdge.safeParse(arrival.message.data);
  if (!edge.success) return { fault: firstFault(edge.error, { value: arrival.message.data, name: 'data' }) };
  const { status, reason } = edge.data;
  const put = await applyStatus(queries, arrival, { asset_id, status, reason: reason ?? null });
  return appliedOf(put, { kind: 'asset', kit_id: arrival.kit_id, asset_id });
}

/** What the kit has of a partner asset. */
async function applyPartner(
  queries: Queries,
  { kit_id, message, now_ms }: Arrival,
  asset_id: string,
): Promise<Applied> {
  const read = message.data === null ? { data: null } : readLenient(partnerRecord, message.data);
  if ('fault' in read) return read;
  if (read.data && read.data.id !== asset_id) return { fault: texts.other_id('id', read.data.id) };
  return takePartner(queries, { kit_id, asset_id, change: { record: read.data }, from: 'kit', now_ms });
}

const announced = { asset: applyAsset, commands: applyCommands, partner: applyPartner } as const;

interface Status {
  readonly asset_id: string;
  readonly status: string;
  readonly reason: string | null;
}

/** Stores the status, which announcements and events both contain; the newer one counts. */
async function applyStatus(queries: Queries, arrival: Arrival, { asset_id, status, reason }: Status) {
  const { kit_id, message } = arrival;
  const place: Place = { table: 'asset_status', key: { kit_id, asset_id }, rows_max: kit_limits.assets };
  return putNewest(queries, place, { status, reason }, message);
}

/** What a `drops` message reports, by epoch; empty for any other message. A report is never about a later epoch. */
export function droppedIn({
  channel,
  data,
  epoch,
  refused,
}: Message): readonly { epoch: number; rows: number }[] {
  if (channel.kind !== 'drops' || refused !== undefined) return [];
  const read = readLenient(dropReport, data);
  return 'fault' in read ? [] : read.data.drops.filter((drop) => drop.epoch <= epoch);
}

async function applyDrops(queries: Queries, { kit_id, message, now_ms }: Arrival): Promise<Applied> {
  const read = readLenient(dropReport, message.data);
  if ('fault' in read) return read;
  await noteHoles(queries, { kit_id, report: read.data, reported_ms: message.time_ms });
  const rowsOf = (drops: typeof read.data.drops): number => drops.reduce((sum, { rows }) => sum + rows, 0);
  // A superseded value is not a loss.
  const superseded = rowsOf(read.data.drops.filter(({ reason }) => reason === 'superseded'));
  await sql(queries)`UPDATE kits SET dropped = dropped + ${rowsOf(read.data.drops) - superseded},
    superseded = superseded + ${superseded} WHERE kit_id = ${kit_id}`;
  await noteLosses(queries, kit_id, { dropped: droppedNews(read.data) }, now_ms);
  return [{ kind: 'kit', kit_id }];
}

/** By lane and reason. */
function droppedNews({ drops }: DropReport): readonly News[] {
  const lost = drops.filter(({ reason }) => reason !== 'superseded');
  const kinds = Map.groupBy(lost, ({ lane, reason }) => `${lane} ${reason}`);
  return [...kinds.values()].flatMap((some) => {
    const [first] = some;
    const count = some.reduce((sum, { rows }) => sum + rows, 0);
    return first ? [{ what: first.lane, reason: first.reason, count }] : [];
  });
}

const ids = jsonOf.pipe(z.array(z.string()));

/** Removes the assets that the roster of the kit does not name, unless they were announced after it. */
async function applyRoster(queries: Queries, { kit_id, message }: Arrival): Promise<Applied> {
  const read = readLenient(roster, message.data);
  if ('fault' in read) return read;
  const place: Place = { table: 'rosters', key: { kit_id }, rows_max: 1 };
  const assets = JSON.stringify(read.data.assets);
  if ((await putNewest(queries, place, { assets }, message)) !== 'stored') return [];
  const { epoch, seq, time_ms } = message;
  const older = await sql(queries)`SELECT asset_id FROM assets WHERE kit_id = ${kit_id}
    AND partner = 0 AND gone = 0 AND (epoch, seq) < (${epoch}, ${seq})`;
  const named = new Set(read.data.assets);
  const changes: Change[] = [];
  for (const asset_id of older.map((row) => String(row['asset_id']))) {
    if (named.has(asset_id)) continue;
    await sql(queries)`UPDATE assets SET gone = 1, epoch = ${epoch}, seq = ${seq}, time_ms = ${time_ms}
      WHERE kit_id = ${kit_id} AND asset_id = ${asset_id}`;
    changes.push({ kind: 'asset_gone', kit_id, asset_id });
  }
  return changes;
}

/** Returns whether the announcement is older than the newest roster and its asset is missing there. */
async function isRemovedByRoster(queries: Queries, arrival: Arrival, asset_id: string): Promise<boolean> {
  const { kit_id, message } = arrival;
  const [row] = await sql(queries)`SELECT assets FROM rosters WHERE kit_id = ${kit_id}
    AND (epoch, seq) > (${message.epoch}, ${message.seq})`;
  return row !== undefined && !ids.parse(row['assets']).includes(asset_id);
}

export interface AppliedState {
  readonly changes: readonly Change[];
  /** As it belongs into the history: with the time and the report that are true. Undefined: it repeats what is known. */
  readonly kept: Message | undefined;
}

/** What the kit reported, and when. */
type Report = NonNullable<StoredKit['state']>;

/** The newest presence before this one. */
interface Known {
  readonly state: Report | undefined;
  readonly epoch: number;
  readonly seq: number;
  readonly since_ms: number | null;
}

/** Stores the presence of a kit, and finds out when it connected or disconnected. Undefined: a newer one is known. Its sequence counts connections, and a will was written long before it is sent: times do not order states. */
export async function applyState(
  queries: Queries,
  { kit_id, message, now_ms }: Arrival,
): Promise<AppliedState | { readonly fault: string } | undefined> {
  const read = readLenient(kitState, message.data);
  if ('fault' in read) return read;
  const { epoch, seq } = message;
  const [row] = await sql(queries)`SELECT state, state_epoch, state_seq, since_ms
    FROM kits WHERE kit_id = ${kit_id} AND (${epoch}, ${seq}) > (state_epoch, state_seq)`;
  if (!row) return undefined;
  const known = knownOf(row);
  const isTimed = !isWill(read.data) && !message.unsynced;
  const time_ms = isTimed ? message.time_ms : await noticedAt(queries, { kit_id, known, now_ms });
  const report = reportOf(read.data, { message, known, time_ms });
  const { said_ms: _, ...data } = report;
  const { online, reason } = data;
  const isTurn = known.state?.online !== online;
  // By the clock of the service. Null: that was before anybody looked.
  const turned_ms = isWill(data) && !known.state ? null : Math.min(time_ms, now_ms);
  await sql(queries)`UPDATE kits SET state = ${JSON.stringify(report)}, state_epoch = ${epoch},
    state_seq = ${seq}, since_ms = ${isTurn ? turned_ms : known.since_ms} WHERE kit_id = ${kit_id}`;
  return {
    changes: [{ kind: 'kit', kit_id, ...(isTurn && { turned: { online, reason, epoch, seq, time_ms } }) }],
    kept: isRepeated(known, report, epoch)
      ? undefined
      : { ...message, time_ms, unsynced: false, data: json.parse(data) },
  };
}

function knownOf(row: Row): Known {
  return {
    state: typeof row['state'] === 'string' ? stateOf.parse(row['state']) : undefined,
    epoch: Number(row['state_epoch']),
    seq: Number(row['state_seq']),
    since_ms: row['since_ms'] === null ? null : Number(row['since_ms']),
  };
}

/** Presence is reported with each connection, and with each figure of the buffer: only what differs otherwise is an event. */
function isRepeated({ state, epoch }: Known, report: Report, its_epoch: number): boolean {
  return state !== undefined && epoch === its_epoch && newsOf(state) === newsOf(report);
}

function newsOf({ online, reason, name, boot, software, degraded }: Report): string {
  return JSON.stringify([online, reason, name ?? null, boot, software, degraded]);
}

function isWill({ online, reason }: Pick<KitState, 'online' | 'reason'>): boolean {
  return !online && reason === connection_lost;
}

interface Reporting {
  readonly message: Message;
  readonly known: Known;
  readonly time_ms: number;
}

/** The newest report of the kit: the other states of a connection were written after its will. */
function reportOf(state: KitState, { message, known, time_ms }: Reporting): Report {
  if (!isWill(state)) return { ...state, said_ms: time_ms };
  const { online, reason } = state;
  const isOlder = known.epoch === message.epoch && isOfConnection(known.seq, message.seq);
  if (known.state && isOlder) return { ...known.state, online, reason };
  return { ...state, ...(!message.unsynced && { said_ms: message.time_ms }) };
}

interface Noticing extends Pick<Arrival, 'kit_id' | 'now_ms'> {
  readonly known: Known;
}

/**
 * When the service noticed what carries no time of its own: a will, which has the time of the connect, and a state of a kit whose
 * clock is not set. Never before the newest message of the kit: where its clock is ahead, the end would stand before what it ends.
 */
async function noticedAt(queries: Queries, { kit_id, known, now_ms }: Noticing): Promise<number> {
  const [newest] = await sql(queries)`SELECT time_ms FROM (SELECT time_ms, epoch, seq
    FROM kit_parts WHERE kit_id = ${kit_id}
    UNION ALL SELECT time_ms, epoch, seq FROM feeds WHERE kit_id = ${kit_id}) AS known
      ORDER BY epoch DESC, seq DESC LIMIT 1`;
  return Math.max(now_ms, known.state?.said_ms ?? 0, Number(newest?.['time_ms'] ?? 0));
}
