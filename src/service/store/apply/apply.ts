/** Stores one message of a kit: the newest values by stamp, tasks by revision. */
import { z } from 'zod';
import { announcement, assetStatus, commandList } from '../../../contract/assets.ts';
import { noteHoles } from '../../history/holes.ts';
import { type DropReport, dropReport } from '../../../contract/drops.ts';
import { firstFault } from '../../../contract/first-fault.ts';
import { partnerRecord } from '../../../contract/partners.ts';
import { readLenient } from '../../ingest/lenient.ts';
import type { Message } from '../../ingest/read-message.ts';
import { feeds_of_kit_max } from './apply-feeds.ts';
import { applyRoster, isRemovedByRoster } from './apply-roster.ts';
import { applyTask } from './apply-task.ts';
import type { Queries } from '../sql/database.ts';
import { type Place, putNewest } from './newest.ts';
import { type News, noteLosses } from '../losses.ts';
import { texts } from '../../texts.ts';
import { takePartner } from '../partners.ts';
import type { Change } from '../store.ts';

/** A message of a kit on its way into the tables. */
export interface Arrival {
  readonly kit_id: string;
  readonly message: Message;
  /** Clock of the service, milliseconds since 1970. */
  readonly now_ms: number;
}

/** The changes of the message, or why it is refused. */
export type Applied = readonly Change[] | { readonly fault: string };

/** Limits of one kit; a connector announces at most 768 assets, and partners add theirs. */
export const kit_limits = { assets: 1_024, feeds: feeds_of_kit_max } as const;

const nothing: Applied = [];
/** Types and protocols of a later minor version are carried as they are. */
const openAnnouncement = announcement.extend({ type: z.string().min(1), protocol: z.string().min(1) });
const statusEdge = z.looseObject({ status: assetStatus, reason: z.string().nullish() });

/** Applies a new message: the caller has checked its epoch and seq. Presence: `apply-state.ts`. */
export async function applyMessage(queries: Queries, arrival: Arrival): Promise<Applied> {
  const { channel, refused } = arrival.message;
  if (refused !== undefined) return { fault: refused };
  if ('asset_id' in channel && !('feed' in channel)) {
    return announced[channel.kind](queries, arrival, channel.asset_id);
  }
  switch (channel.kind) {
    case 'feed':
    case 'event':
      return applyEvent(queries, arrival, channel);
    case 'task':
      return applyTask(queries, arrival, channel.task_id);
    case 'drops':
      return applyDrops(queries, arrival);
    case 'roster':
      return applyRoster(queries, arrival);
    case 'state':
    case 'telemetry':
    case 'batch':
    default:
      return { fault: texts.not_separate };
  }
}

async function applyAsset(queries: Queries, arrival: Arrival, asset_id: string): Promise<Applied> {
  const { kit_id, message } = arrival;
  const place: Place = { table: 'assets', key: { kit_id, asset_id }, rows_max: kit_limits.assets };
  if (message.data === null) {
    const put = await putNewest(queries, place, { data: '{}', gone: 1 }, message);
    return put === 'stored' ? [{ kind: 'asset_gone', kit_id, asset_id }] : nothing;
  }
  const read = readLenient(openAnnouncement, message.data);
  if ('fault' in read) return read;
  if (read.data.id !== asset_id) return { fault: texts.other_id('id', read.data.id) };
  if (await isRemovedByRoster(queries, arrival, asset_id)) return nothing;
  const put = await putNewest(queries, place, { data: JSON.stringify(read.data), gone: 0 }, message);
  const { status, status_reason } = read.data;
  await applyStatus(queries, arrival, { asset_id, status, reason: status_reason });
  if (put === 'full') return { fault: texts.too_many_assets(kit_limits.assets) };
  return put === 'stored' ? [{ kind: 'asset', kit_id, asset_id }] : nothing;
}

async function applyCommands(queries: Queries, arrival: Arrival, asset_id: string): Promise<Applied> {
  const { kit_id, message } = arrival;
  const read = readLenient(commandList, message.data ?? { revision: 1, commands: [] });
  if ('fault' in read) return read;
  const place: Place = { table: 'commands', key: { kit_id, asset_id }, rows_max: kit_limits.assets };
  const put = await putNewest(queries, place, { data: JSON.stringify(read.data.commands) }, message);
  if (put === 'full') return { fault: texts.too_many_assets(kit_limits.assets) };
  return put === 'stored' ? [{ kind: 'commands', kit_id, asset_id }] : nothing;
}

/** A link event is not stored here: the telemetry of the kit contains the state. Other feeds: `apply-feeds.ts`. */
async function applyEvent(
  queries: Queries,
  arrival: Arrival,
  { asset_id, feed }: { readonly asset_id: string; readonly feed: string },
): Promise<Applied> {
  if (feed !== 'asset_status') return nothing;
  const edge = statusEdge.safeParse(arrival.message.data);
  if (!edge.success) return { fault: firstFault(edge.error, { value: arrival.message.data, name: 'data' }) };
  const { status, reason } = edge.data;
  const put = await applyStatus(queries, arrival, { asset_id, status, reason: reason ?? null });
  if (put === 'full') return { fault: texts.too_many_assets(kit_limits.assets) };
  return put === 'stored' ? [{ kind: 'asset', kit_id: arrival.kit_id, asset_id }] : nothing;
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
  await queries.all(
    'UPDATE kits SET dropped = dropped + ?, superseded = superseded + ? WHERE kit_id = ?',
    rowsOf(read.data.drops) - superseded,
    superseded,
    kit_id,
  );
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
