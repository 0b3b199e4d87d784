/** Brings what a damaged file still holds into a new one, the most important first. */
import { z } from 'zod';
import { dropReason } from '../contract/drops.ts';
import { lanes, type Lane } from '../contract/lanes.ts';
import { Changes, perLane, no_depth, type Depth } from './changes.ts';
import { lastKey, readEnds, readPast } from './damaged-file.ts';
import { diskFault } from './disk-fault.ts';
import { isJson } from './json-text.ts';
import { positionOf, rowId, seq_max, type RowId } from './row.ts';
import { laneTable, writeMeta, type Handle } from './schema.ts';
import type { Tables } from './tables.ts';

/** Nobody waits longer for a damaged file; what is not read by then stays in the file that was moved aside. */
const salvage_ms_max = 60_000;
const commit_rows = 5_000;
const epochs_end = 2 ** 20;

export interface Salvaged {
  readonly depth: Depth;
  /** What the damaged file's own counters said; undefined when they are lost too. */
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

const text = z.string();
const whole = z.int();
const count = whole.min(0);
const epochNumber = whole.min(1).max(epochs_end);
const rowKey = whole.min(seq_max).max(epochs_end * seq_max);
const jsonText = text.refine(isJson);
const laneName = z.enum(lanes);

/** What a row of each table must be, to be more than what a broken page happens to say. */
const shapes = {
  topics: z.tuple([whole, text]),
  channels: z.tuple([text, whole]),
  lane: z.tuple([rowKey, whole, whole, whole.nullable(), jsonText]),
  depth: z.tuple([laneName, count, count]),
  meta: z.tuple([text, z.number()]),
  announced: z.tuple([text, rowKey, jsonText]),
  epochs: z.tuple([epochNumber, text, z.number().nullable()]),
  drops: z.tuple([epochNumber, laneName, dropReason, whole.min(1), count, count]),
  tasks: z.tuple([
    whole,
    text,
    z.enum(['pending', 'running', 'completed', 'failed']),
    jsonText,
    jsonText,
    whole,
    whole,
    whole.nullable(),
  ]),
  quarantine: z.tuple([rowKey, laneName, text, whole, whole.nullable(), whole, text, jsonText]),
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

/** Reads `damaged` into the tables of a new file. Throws what SQLite throws when the new file does not take it. */
export function salvage(damaged: Handle, into: Tables): Salvaged {
  const end_ms = performance.now() + salvage_ms_max;
  const goOn = (): boolean => performance.now() < end_ms;
  const meta = new Map(valid(shapes.meta, readEnds(damaged, 'meta', columns.meta)));
  const counters = new Map<Lane, { rows: number; bytes: number }>();
  for (const [lane, rows, bytes] of valid(shapes.depth, readEnds(damaged, 'depth', columns.depth))) {
    counters.set(lane, { rows, bytes });
  }
  into.db.transaction(() => {
    copyRecords(damaged, into, goOn);
    if (meta.get('cloud_acks') === 1) writeMeta(into.db, 'cloud_acks', 1);
  })();
  const { depth, newest } = copyLanes(damaged, into, goOn);
  return {
    depth,
    expected:
      counters.size === lanes.length
        ? perLane((lane) => counters.get(lane) ?? { rows: 0, bytes: 0 })
        : undefined,
    epoch: epochNumber.safeParse(meta.get('epoch')).data,
    epoch_seen: Math.max(positionOf(newest).epoch, ...into.epochs.all()),
  };
}

/** The buffered messages, lane by lane, until they are all read or the new file is full. */
function copyLanes(damaged: Handle, into: Tables, goOn: () => boolean): { depth: Depth; newest: RowId } {
  const channels = readChannels(damaged, goOn);
  let depth = no_depth;
  let newest: RowId = 0;
  for (const lane of lanes) {
    const anchors = epochStarts(damaged, laneTable(lane), into);
    const stored = valid(
      shapes.lane,
      readPast(damaged, laneTable(lane), { columns: columns.lane, anchors, goOn }),
    );
    for (const part of inParts(stored, commit_rows)) {
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
    }
  }
  return { depth, newest };
}

/** Where the numbers of each epoch begin that either the record of epochs or the last row knows. */
function epochStarts(damaged: Handle, table: string, into: Tables): readonly RowId[] {
  const last = lastKey(damaged, table, 'id');
  const epochs = new Set(into.epochs.all());
  if (last !== undefined) epochs.add(positionOf(last).epoch);
  return [...epochs].map((epoch) => rowId({ epoch, seq: 0 }));
}

/** Without its channel a row is worth nothing, and one page holds many: what the table has lost its index may have. */
function readChannels(damaged: Handle, goOn: () => boolean): ReadonlyMap<number, string> {
  const indexed = valid(shapes.channels, readEnds(damaged, 'topics', columns.channels));
  const channels = new Map([...indexed].map(([channel, id]) => [id, channel]));
  const stored = valid(
    shapes.topics,
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
  for (const [epoch, boot_id, offset_ms] of valid(shapes.epochs, read('epochs'))) {
    into.epochs.put(epoch, boot_id, offset_ms);
  }
  for (const task of valid(shapes.tasks, read('tasks'))) {
    const [, task_id, state, dispatch, result, received_ms, updated_ms, deadline_ms] = task;
    into.journal.put({ task_id, state, dispatch, result, received_ms, updated_ms, deadline_ms });
  }
  const anchors = epochStarts(damaged, 'quarantine', into);
  const quarantined = readPast(damaged, 'quarantine', { columns: columns.quarantine, anchors, goOn });
  for (const kept of valid(shapes.quarantine, quarantined)) {
    const [id, lane, channel, time_ms, mono_ms, code, reason, body] = kept;
    const row = { id, lane, channel, time_ms, mono_ms, body };
    into.quarantine.put([{ row, code, reason }], new Changes(no_depth));
  }
  for (const told of valid(shapes.drops, readEnds(damaged, 'drops', columns.drops))) {
    const [epoch, lane, reason, rows, lo, hi] = told;
    into.drops.add({ epoch, lane, reason, rows, lo, hi });
  }
  const announced = valid(shapes.announced, readEnds(damaged, 'announced', columns.announced));
  for (const [channel, id, body] of announced) into.announced.put({ channel, id, body });
}

/** The rows that are what their table says. */
function* valid<T>(shape: z.ZodType<T>, rows: Iterable<unknown>): Generator<T> {
  for (const row of rows) {
    const read = shape.safeParse(row);
    if (read.success) yield read.data;
  }
}

function* inParts<T>(items: Iterable<T>, size: number): Generator<readonly T[]> {
  let part: T[] = [];
  for (const item of items) {
    part.push(item);
    if (part.length < size) continue;
    yield part;
    part = [];
  }
  if (part.length > 0) yield part;
}
