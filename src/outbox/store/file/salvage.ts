/** Brings what a damaged file still holds into a new one, the most important first. */
import { lanes, type Lane } from '../../../contract/lanes.ts';
import { Changes, perLane, no_depth, type Depth } from '../changes.ts';
import { lastKey, readEnds, readPast } from './damaged-file.ts';
import { diskFault } from './disk-fault.ts';
import { positionOf, rowId, type RowId } from '../../row.ts';
import { epochNumber, rowShapes, valid } from '../row-shapes.ts';
import type { OpenOptions } from '../../protocol.ts';
import { isOtherKit, laneTable, writeMeta, type Handle } from '../schema.ts';
import type { Tables } from '../tables/tables.ts';

/** Time limit for a damaged file; what is not read by then stays in the file that was moved aside. */
const salvage_ms_max = 60_000;
/** Interval of the progress reports. */
const report_every_ms = 500;
/** One part of a lane, in one transaction: what the memory of the thread holds well. */
const part_rows = 5_000;
const part_chars = 4 * 1024 * 1024;

export interface Salvaged {
  readonly depth: Depth;
  /** The counters of the damaged file; undefined when they are lost too. */
  readonly expected: Depth | undefined;
  /** The epoch that the damaged file named; undefined when it cannot be read. */
  readonly epoch: number | undefined;
  /** The highest epoch of anything that was read. */
  readonly epoch_seen: number;
}

export const nothing_salvaged: Salvaged = {
  depth: no_depth,
  expected: undefined,
  epoch: undefined,
  epoch_seen: 0,
};

const columns = {
  topics: ['id', 'channel'],
  channels: ['channel', 'id'],
  lane: ['id', 'topic', 'time_ms', 'mono_ms', 'body'],
  depth: ['lane', 'rows', 'bytes'],
  meta: ['key', 'value'],
  announced: ['channel', 'id', 'body'],
  epochs: ['epoch', 'boot_id', 'clock_offset_ms'],
  drops: ['epoch', 'lane', 'reason', 'rows', 'lo', 'hi'],
  tasks: ['arrival', 'task_id', 'state', 'dispatch', 'result', 'received_ms', 'updated_ms', 'deadline_ms'],
  quarantine: ['id', 'lane', 'channel', 'time_ms', 'mono_ms', 'code', 'reason', 'body'],
} as const;

/**
 * Reads `damaged` into the tables of a new file; of another kit than `kit_id` only the epoch. `onSalvage` receives the progress:
 * at the beginning, twice a second, and at the end. Throws what SQLite throws when the new file does not take it.
 */
export function salvage(
  damaged: Handle,
  into: Tables,
  { kit_id, onSalvage: report = () => undefined }: Pick<OpenOptions, 'kit_id' | 'onSalvage'>,
  ms_max = salvage_ms_max,
): Salvaged {
  const end_ms = performance.now() + ms_max;
  const goOn = (): boolean => performance.now() < end_ms;
  const stored = readEnds(damaged, 'meta', columns.meta);
  const meta = new Map(valid(rowShapes.meta, stored));
  const owner = new Map(valid(rowShapes.metaText, stored)).get('kit_id');
  const named = meta.get('epoch');
  const epoch = epochNumber(named) ? named : undefined;
  if (isOtherKit(owner, kit_id)) return { ...nothing_salvaged, epoch, epoch_seen: epoch ?? 0 };
  const counters = new Map<Lane, { rows: number; bytes: number }>();
  for (const [lane, rows, bytes] of valid(rowShapes.depth, readEnds(damaged, 'depth', columns.depth))) {
    counters.set(lane, { rows, bytes });
  }
  const expected =
    counters.size === lanes.length
      ? perLane((lane) => counters.get(lane) ?? { rows: 0, bytes: 0 })
      : undefined;
  const rows_expected = expected ? rowsIn(expected) : null;
  report({ rows_saved: 0, rows_expected, done: false });
  into.db.transaction(() => {
    copyRecords(damaged, into, goOn);
    copyTotals(damaged, into);
    if (meta.get('cloud_acks') === 1) writeMeta(into.db, 'cloud_acks', 1);
  })();
  let reported_ms = performance.now();
  const { depth, newest } = copyLanes(damaged, into, {
    goOn,
    saved: (depth) => {
      if (performance.now() - reported_ms < report_every_ms) return;
      reported_ms = performance.now();
      report({ rows_saved: rowsIn(depth), rows_expected, done: false });
    },
  });
  report({ rows_saved: rowsIn(depth), rows_expected, done: true });
  return {
    depth,
    expected,
    epoch,
    epoch_seen: Math.max(positionOf(newest).epoch, ...into.epochs.all()),
  };
}

/** The buffered messages, lane by lane, until they are all read or the new file is full. */
function copyLanes(
  damaged: Handle,
  into: Tables,
  { goOn, saved }: { readonly goOn: () => boolean; readonly saved: (depth: Depth) => void },
): { depth: Depth; newest: RowId } {
  const channels = readChannels(damaged, goOn);
  let depth = no_depth;
  let newest: RowId = 0;
  for (const lane of lanes) {
    const anchors = epochStarts(damaged, laneTable(lane), into);
    const stored = valid(
      rowShapes.lane,
      readPast(damaged, laneTable(lane), { columns: columns.lane, anchors, goOn }),
    );
    for (const part of inParts(stored, ([, , , , body]) => body.length)) {
      const changes = new Changes(depth);
      const insert = into.db.transaction(() => {
        for (const [id, topic, time_ms, mono_ms, body] of part) {
          newest = Math.max(newest, id);
          const channel = channels.get(topic);
          if (channel !== undefined) into.insert({ id, lane, channel, time_ms, mono_ms, body }, changes);
        }
        into.writeDepth(changes);
      });
      if (!hasRoomFor(insert)) return { depth, newest };
      depth = changes.depth();
      saved(depth);
    }
  }
  return { depth, newest };
}

export function rowsIn(depth: Depth): number {
  return lanes.reduce((sum, lane) => sum + depth[lane].rows, 0);
}

/** The first row id of each epoch that the epochs table or the last row names. */
function epochStarts(damaged: Handle, table: string, into: Tables): readonly RowId[] {
  const last = lastKey(damaged, table, 'id');
  const epochs = new Set(into.epochs.all());
  if (last !== undefined) epochs.add(positionOf(last).epoch);
  return [...epochs].map((epoch) => rowId({ epoch, seq: 0 }));
}

/** Without its channel a row is worth nothing, and one page holds many: what the table has lost its index may have. */
function readChannels(damaged: Handle, goOn: () => boolean): ReadonlyMap<number, string> {
  const indexed = valid(rowShapes.channels, readEnds(damaged, 'topics', columns.channels));
  const channels = new Map([...indexed].map(([channel, id]) => [id, channel]));
  const stored = valid(
    rowShapes.topics,
    readPast(damaged, 'topics', { columns: columns.topics, anchors: [], goOn }),
  );
  for (const [id, channel] of stored) channels.set(id, channel);
  return channels;
}

function hasRoomFor(insert: () => void): boolean {
  try {
    insert();
    return true;
  } catch (error) {
    if (diskFault(error)?.kind === 'full') return false;
    throw error;
  }
}

function copyRecords(damaged: Handle, into: Tables, goOn: () => boolean): void {
  const read = (table: 'epochs' | 'tasks') =>
    readPast(damaged, table, { columns: columns[table], anchors: [], goOn });
  for (const [epoch, boot_id, offset_ms] of valid(rowShapes.epochs, read('epochs'))) {
    into.epochs.put(epoch, boot_id, offset_ms);
  }
  for (const task of valid(rowShapes.tasks, read('tasks'))) {
    const [, task_id, state, dispatch, result, received_ms, updated_ms, deadline_ms] = task;
    into.journal.put({ task_id, state, dispatch, result, received_ms, updated_ms, deadline_ms });
  }
  const anchors = epochStarts(damaged, 'quarantine', into);
  const quarantined = readPast(damaged, 'quarantine', { columns: columns.quarantine, anchors, goOn });
  for (const kept of valid(rowShapes.quarantine, quarantined)) {
    const [id, lane, channel, time_ms, mono_ms, code, reason, body] = kept;
    const row = { id, lane, channel, time_ms, mono_ms, body };
    into.quarantine.put([{ row, code, reason }], new Changes(no_depth));
  }
  for (const told of valid(rowShapes.drops, readEnds(damaged, 'drops', columns.drops))) {
    const [epoch, lane, reason, rows, lo, hi] = told;
    into.drops.add({ epoch, lane, reason, rows, lo, hi });
  }
  const announced = valid(rowShapes.announced, readEnds(damaged, 'announced', columns.announced));
  for (const [channel, id, body] of announced) into.announced.put({ channel, id, body });
}

/** After the drops, which count themselves. */
function copyTotals(damaged: Handle, into: Tables): void {
  into.totals.restore(
    [...valid(rowShapes.total, readEnds(damaged, 'depth', columns.depth))],
    new Map(valid(rowShapes.meta, readEnds(damaged, 'meta', columns.meta))),
  );
}

function* inParts<T>(items: Iterable<T>, charsOf: (item: T) => number): Generator<readonly T[]> {
  let part: T[] = [];
  let chars = 0;
  for (const item of items) {
    part.push(item);
    chars += charsOf(item);
    if (part.length < part_rows && chars < part_chars) continue;
    yield part;
    part = [];
    chars = 0;
  }
  if (part.length > 0) yield part;
}
