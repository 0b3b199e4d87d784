/** What must be true when a story is over and everything is quiet. */
import { join } from 'node:path';
import { buffer_file } from '../../../src/kit/app/app.ts';
import type { DropReport } from '../../../src/contract/drops.ts';
import { laneRules } from '../../../src/contract/lanes.ts';
import { parseUp } from '../../../src/contract/topics.ts';
import { positionOf, rowId, type RowId } from '../../../src/kit/outbox/row.ts';
import { checkTasks } from './check-tasks.ts';
import type { Scene } from '../scene.ts';
import {
  type BufferTables,
  bufferTables,
  historyNumbers,
  newestRows,
  type ServiceTables,
  serviceTables,
} from '../world/service-tables.ts';
import type { Taken, Witness } from './witness.ts';

export async function checkEnd(scene: Scene): Promise<void> {
  const { kit, service } = scene;
  const buffer = bufferTables(join(kit.disk.folder, buffer_file));
  const tables = serviceTables(service.file);
  const say = (what: string): void => scene.violation(what);
  checkNothingMissing(scene, buffer, say);
  checkDrops(scene, say);
  checkCounts(scene.witness, tables, say);
  checkHistory(scene.witness, await historyNumbers(service.file), say);
  checkNewest(scene.witness, newestRows(service.file), say);
  checkRetained(scene, say);
  checkTasks(scene, tables, buffer, say);
  checkHealth(scene, say);
}

type Say = (what: string) => void;

/** Every accepted message is stored, named in `drops`, or still in the buffer. */
function checkNothingMissing(scene: Scene, { rows, quarantined }: BufferTables, say: Say): void {
  const { witness } = scene;
  const isFound = (id: RowId): boolean => witness.stored.has(id) || rows.has(id) || quarantined.has(id);
  const missing = [...witness.taken.values()].filter(
    (taken) => !isFound(taken.id) && !mayBeMissing(scene, taken),
  );
  const groups = Map.groupBy(missing, ({ id, lane }) => `${positionOf(id).epoch} ${lane}`);
  for (const some of groups.values()) explain(scene, some, say);
  for (const id of witness.stored.keys()) {
    if (!witness.taken.has(id)) say(`the service stored ${nameOf(id)}, which no kit has sent`);
  }
}

const for_want_of_room: ReadonlySet<string> = new Set(['evicted', 'thinned', 'expired']);

/** What makes room goes only where there is none, and never from the lanes that are promised to be kept. */
function checkDrops(scene: Scene, say: Say): void {
  const { room_was_short, setting } = scene;
  const { rows_max, bytes_max } = setting.kit;
  const was_short = room_was_short || rows_max < rows_enough || bytes_max < bytes_enough;
  for (const { lane, reason, rows } of namedDrops(scene)) {
    if (!for_want_of_room.has(reason)) continue;
    if (!laneRules[lane].evictable) say(`${rows} messages of the lane ${lane} were ${reason}`);
    else if (!was_short) say(`${rows} messages of the lane ${lane} were ${reason}, and there was room`);
  }
}
/** No story fills as much. */
const rows_enough = 100_000;
const bytes_enough = 256 * 1024 * 1024;

function mayBeMissing(scene: Scene, taken: Taken): boolean {
  const { id, channel, excused, lane } = taken;
  if (excused) return true;
  // Of a retained topic only the newest counts, and a removal may arrive as an empty payload, which has no number.
  const is_old = scene.witness.last_of_channel.get(channel) !== taken;
  if (lane === 'presence' && is_old) return true;
  return scene.witness.lost.has(id) && mayBeLost(scene, taken);
}

/** The broker lost it after its PUBACK. */
function mayBeLost({ setting, kit, lied }: Scene, { lane, on_disk, at_ms }: Taken): boolean {
  const needs_cloud = lane === 'task' || lane === 'alarm';
  if (!needs_cloud || !on_disk || lied || setting.kit.ack === 'broker') return true;
  return setting.kit.ack === 'auto' && at_ms < kit.acks_from_ms;
}

/** All that was named: a report on `drops` is a message of the task lane, and may be lost where those may. */
function namedDrops(scene: Scene): DropReport['drops'] {
  const { witness } = scene;
  const lost = [...witness.lost_drops].flatMap(([id, drops]) => {
    const report = witness.taken.get(id);
    return report && !witness.stored.has(id) && mayBeLost(scene, report) ? drops : [];
  });
  return [...witness.drops, ...lost];
}

/** Missing messages of one epoch and lane: drops must name so many, between their ends. */
function explain(scene: Scene, missing: readonly Taken[], say: Say): void {
  const [first] = missing;
  if (!first) return;
  const { epoch } = positionOf(first.id);
  const drops = namedDrops(scene).filter((drop) => drop.epoch === epoch && drop.lane === first.lane);
  const named = drops.reduce((sum, { rows }) => sum + rows, 0);
  const outside = missing.filter(({ id }) => {
    const { seq } = positionOf(id);
    return !drops.some(({ lo, hi }) => lo <= seq && seq <= hi);
  });
  const some = missing
    .slice(0, 3)
    .map(({ id, channel, at_ms }) => `${nameOf(id)} of ${at_ms.toFixed(0)} ms on ${channel}`);
  if (outside.length > 0 || named < missing.length) {
    say(
      `${missing.length} accepted messages of the lane ${first.lane} are nowhere, drops name ${named}: ${some.join(', ')}`,
    );
  }
}

/** What the service stored is in its history once. */
function checkHistory({ stored }: Witness, counts: ReadonlyMap<RowId, number>, say: Say): void {
  const ids = [...stored.keys()];
  const missing = ids.filter((id) => !counts.has(id));
  if (missing.length > 0) {
    say(
      `${missing.length} stored messages are not in the history: ${missing.slice(0, 3).map(nameOf).join(', ')}`,
    );
  }
  const doubled = stored.size > counted_exactly ? [] : [...counts].filter(([, count]) => count > 1);
  if (doubled.length > 0) say(`${doubled.length} messages are in the history more than once`);
  const strange = [...counts.keys()].filter((id) => !stored.has(id));
  if (strange.length > 0) say(`${strange.length} messages of the history were never stored`);
}

/** Each message counts once, as far as the service promises to count. */
function checkCounts(witness: Witness, { counts }: ServiceTables, say: Say): void {
  if (witness.stored.size > counted_exactly || counts.received === witness.stored.size) return;
  say(`the service counts ${counts.received} messages, it stored ${witness.stored.size}`);
}
/** Of fewer messages the service never forgets one. */
const counted_exactly = 8_000;

/** The newest value of each thing is the one that the kit said last. */
function checkNewest(witness: Witness, rows: ReturnType<typeof newestRows>, say: Say): void {
  const shown = new Map(rows.map(({ key, epoch, seq }) => [key, rowId({ epoch, seq })]));
  for (const [key, { id }] of witness.newest) {
    const at = shown.get(key);
    if (at !== undefined && at < id)
      say(`the service shows ${nameOf(at)} of ${key.split(' ')[0]}, and has had ${nameOf(id)}`);
  }
}

/** What the broker keeps of the assets is what the kit said last. */
function checkRetained({ broker, witness, kit_id }: Scene, say: Say): void {
  const kept = new Map<string, string>();
  for (const { topic, payload } of broker.retained.values()) {
    const place = parseUp(topic);
    if (place?.kit_id === kit_id) kept.set(place.channel, payload.toString('utf8'));
  }
  for (const last of witness.last_of_channel.values()) {
    if (!last.excused && !witness.lost.has(last.id)) checkKept(last, kept, say);
  }
}

function checkKept({ channel, body, id }: Taken, kept: ReadonlyMap<string, string>, say: Say): void {
  const payload = kept.get(channel);
  const kind = channel.endsWith('/commands') ? 'commands' : 'asset';
  if (body === 'null') {
    if (payload !== undefined && isOnRoster(channel, payload, kept.get('roster')))
      say(`the broker still keeps ${kind} of an asset that is gone`);
  } else if (payload === undefined) say(`the broker keeps no ${kind} of an asset that is there`);
  else if (idOf(payload) !== id)
    say(`the broker keeps ${nameOf(idOf(payload))} of ${kind}, the kit said ${nameOf(id)} last`);
}

/** A newer roster that does not name the asset says that it is gone. */
function isOnRoster(channel: string, payload: string, roster: string | undefined): boolean {
  const [, asset_id = ''] = channel.split('/');
  return roster === undefined || idOf(roster) < idOf(payload) || roster.includes(asset_id);
}

function idOf(payload: string): RowId {
  const value: unknown = JSON.parse(payload);
  if (typeof value !== 'object' || value === null) return -1;
  const { epoch, seq } = { epoch: 0, seq: 0, ...value };
  return rowId({ epoch, seq });
}

function checkHealth({ kit }: Scene, say: Say): void {
  const outbox = kit.run?.outbox;
  if (!outbox) return;
  const { state, detail } = outbox.health();
  if (state === 'failing') say(`the disk is well again, and the kit says: ${detail}`);
}

function nameOf(id: RowId): string {
  const { epoch, seq } = positionOf(id);
  return `${epoch}/${seq}`;
}
