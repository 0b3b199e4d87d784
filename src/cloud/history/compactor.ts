/**
 * Divides what has landed into segments of one class, epoch and day. Any process may do it: the rows are deleted in the
 * transaction that stores their messages in segments, so that each is in one place, and of two processes one gets them.
 */
import { turn } from '../../platform/time.ts';
import { isErased, observedMs, observedOn, readTombstones, type Tombstones } from './erasure.ts';
import { newId, readLanded } from './landing.ts';
import { byTime, classOf, dayOf, type HistoryMessage, identityOf, type Part } from './message.ts';
import { isMisdated } from './retention.ts';
import { arrivedMessages, bodyOf, messagesOf, openSegment, packSegment, readBody } from './segment.ts';
import { listed, sql, type Database, type Queries, type Row } from '../sql/database.ts';
import { insertRows } from '../sql/many-rows.ts';

/** Messages of a kit that are divided as soon as they are there, and of a segment. */
const segment_messages_max = 2_500;
/** Characters of data of a segment: it is packed, and read, in one turn of the event loop. */
export const segment_chars_max = 512 * 1024;
/** Characters of data that a pass reads of what has landed, and again of what it joins: a kit sends messages of 256 kB. */
export const pass_chars_max = 4 * 1024 * 1024;
const portion_messages = 500;
/** Landed rows of one portion. */
const portion_rows_max = 256;
/** Segments of about one size that are joined: with more, a message is written less often, and a day has more segments. */
const joined_at_once = 8;
/** Newest segments that are looked at: those of three sizes. */
const tails_max = 24;
/** Segments count as of one size up to this factor. */
const same_size = 2;
/** Parts of one portion that are joined with older segments, the largest first: a hostile kit can make each message a part. */
const joined_parts_max = 64;
/** What has landed waits for more for so long. */
export const landed_wait_ms = 3_600_000;

type Segment = Awaited<ReturnType<typeof cut>>[number];

/** The kit that waits most; undefined: none has enough, or waits long enough. `all`: every kit, whatever it has. */
export async function waitingKit(
  queries: Queries,
  now_ms: number,
  all: boolean,
): Promise<string | undefined> {
  const [row] = await sql(queries)`SELECT kit_id FROM kits WHERE landed >= ${all ? 1 : portion_messages}
    OR (landed > 0 AND landed_ms <= ${now_ms - landed_wait_ms}) ORDER BY landed DESC LIMIT 1`;
  return row && String(row['kit_id']);
}

/** Divides some of what has landed of the kit, oldest first. Returns how many messages; another process may have been first. */
export async function compactKit(
  database: Database,
  kit_id: string,
  { now_ms, tombstones }: { readonly now_ms: number; readonly tombstones: Tombstones },
): Promise<number> {
  const most = { rows: portion_rows_max, messages: segment_messages_max, bytes: pass_chars_max };
  const rows = await readLanded(database, kit_id, most);
  if (rows.length === 0) {
    // The count of a process that ended between two versions of it.
    await sql(database)`UPDATE kits SET landed = 0 WHERE kit_id = ${kit_id}
      AND NOT EXISTS (SELECT 1 FROM history_in WHERE kit_id = ${kit_id})`;
    return 0;
  }
  const { landed, found } = await partsOf(rows, tombstones);
  const count = landed.reduce((sum, row) => sum + Number(row['messages']), 0);
  const parts = await withoutKnown(database, kit_id, found);
  const joined = new Joined();
  const segments: Segment[] = [];
  const largest = parts.toSorted((a, b) => b.messages.length - a.messages.length);
  for (const [at, part] of largest.entries()) {
    const older = at < joined_parts_max ? await joined.with(database, kit_id, part) : [];
    const messages = [...older, ...part.messages].filter(
      (message) => !isErased(tombstones, message, observedOn(message, part)),
    );
    segments.push(...(await cut({ ...part, messages }, now_ms)));
  }
  return database
    .transaction(async (queries) => {
      const ids = landed.map((row) => String(row['id']));
      const gone = await sql(queries)`DELETE FROM history_in WHERE kit_id = ${kit_id}
        AND id IN (${listed(ids)}) RETURNING id`;
      if (gone.length < landed.length) throw new Outrun();
      for (const id of joined.ids) {
        const replaced = await sql(queries)`DELETE FROM history WHERE kit_id = ${kit_id}
          AND id = ${id} RETURNING id`;
        if (replaced.length === 0) throw new Outrun();
      }
      await insertSegments(queries, kit_id, segments);
      const changed = parts.map(({ day, misdated, messages }) => {
        return { day, misdated, lo_ms: Math.min(...messages.map(({ time_ms }) => time_ms)) };
      });
      await noteChanged(queries, kit_id, changed);
      await sql(queries)`UPDATE kits SET landed = landed - ${count}, landed_ms = ${now_ms}
        WHERE kit_id = ${kit_id}`;
      // The row of the kit is locked: an erasure is either seen here, or finds these segments.
      if (!isSame(tombstones, await readTombstones(queries, kit_id))) throw new Outrun();
      return count;
    })
    .catch((error: unknown) => {
      if (error instanceof Outrun) return 0;
      throw error;
    });
}

/** Another process divides the same kit, or has erased something of it. */
class Outrun extends Error {}

function isSame(some: Tombstones, others: Tombstones): boolean {
  return some.size === others.size && others.entries().every(([asset_id, ms]) => some.get(asset_id) === ms);
}

/** The messages of the rows, and the rows that were read: the rest is left for the next portion once `pass_chars_max` is reached. */
async function partsOf(
  rows: readonly Row[],
  tombstones: Tombstones,
): Promise<{ readonly landed: readonly Row[]; readonly found: readonly Part[] }> {
  const parts = new Map<string, Part>();
  const seen = new Set<string>();
  const landed: Row[] = [];
  let chars = 0;
  for (const row of rows) {
    if (chars >= pass_chars_max) break;
    if (landed.length > 0) await turn();
    landed.push(row);
    const landed_ms = Number(row['landed_ms']);
    const arrived_ms = Number(row['arrived_ms']);
    for (const message of await messagesOf(bodyOf(row))) {
      chars += message.data.length;
      const identity = identityOf(message);
      if (seen.has(identity) || isErased(tombstones, message, observedMs(message, landed_ms))) continue;
      seen.add(identity);
      const { time_ms, epoch } = message;
      const misdated = isMisdated(message, landed_ms);
      const place = {
        class: classOf(message.channel),
        day: dayOf(misdated ? landed_ms : time_ms),
        epoch,
        misdated,
      };
      const key = placeOf(place);
      const part = parts.get(key) ?? { ...place, messages: [] };
      parts.set(key, part);
      part.messages.push({ ...message, arrived_ms });
    }
  }
  return { landed, found: [...parts.values()] };
}

function placeOf({ class: its, day, epoch, misdated }: Omit<Part, 'messages'>): string {
  return `${its} ${day} ${epoch} ${misdated}`;
}

/** The newest segments of its place that a part may be joined with, the newest first. */
async function tailsOf(queries: Queries, kit_id: string, part: Part): Promise<readonly string[]> {
  // Ordered by the id alone, SQLite would go through all segments of the kit; an expression leaves it the index of the epoch.
  const newest = await sql(queries)`SELECT id, messages, bytes FROM history
    WHERE kit_id = ${kit_id} AND class = ${part.class} AND epoch = ${part.epoch}
    AND day = ${part.day} AND misdated = ${part.misdated ? 1 : 0}
    ORDER BY id || '' DESC LIMIT ${tails_max}`;
  return joinable(newest, part.messages.length);
}

/** The older segments that a pass joins with new messages, up to `pass_chars_max`. */
class Joined {
  readonly ids: string[] = [];
  #chars = 0;

  /** The messages of older segments that are one segment together with those of the part. */
  async with(queries: Queries, kit_id: string, part: Part): Promise<readonly HistoryMessage[]> {
    const joined: HistoryMessage[] = [];
    let chars = charsOf(part.messages);
    for (const id of await tailsOf(queries, kit_id, part)) {
      await turn();
      const body = await readBody(queries, kit_id, id);
      const messages = body ? await arrivedMessages(await openSegment(body)) : [];
      const more = charsOf(messages);
      if (chars + more > segment_chars_max || this.#chars + more > pass_chars_max) break;
      chars += more;
      this.#chars += more;
      this.ids.push(id);
      joined.push(...messages);
    }
    return joined;
  }
}

function charsOf(messages: readonly HistoryMessage[]): number {
  return messages.reduce((sum, { data }) => sum + data.length, 0);
}

/**
 * Segments of about one size are joined when there are enough of them, or as many as a segment takes; and so on with what
 * they make. A message is written again only when its segment has grown many times, and a day has few segments.
 */
function joinable(newest: readonly Row[], messages: number): readonly string[] {
  const ids: string[] = [];
  let joined = messages;
  for (;;) {
    const run: string[] = [];
    let sum = joined;
    let bytes = 0;
    let isFull = false;
    for (const row of newest.slice(ids.length)) {
      const more = Number(row['messages']);
      if (more > joined * same_size) break;
      bytes += Number(row['bytes']);
      isFull = sum + more > segment_messages_max || bytes > pass_chars_max;
      if (isFull) break;
      sum += more;
      run.push(String(row['id']));
    }
    if (run.length === 0 || (!isFull && run.length < joined_at_once - 1)) return ids;
    ids.push(...run);
    joined = sum;
  }
}

/** Segments of at most `segment_messages_max` and `segment_chars_max`, by time. */
export async function cut(part: Part, now_ms: number) {
  await turn();
  const { messages: all, ...place } = part;
  const sorted = [...all].sort(byTime);
  const segments = [];
  for (let at = 0; at < sorted.length;) {
    if (at > 0) await turn();
    const messages = sorted.slice(at, endOf(sorted, at));
    segments.push({ ...place, id: newId(now_ms), ...packed(messages) });
    at += messages.length;
  }
  return segments;
}

/** Index behind the last message of the segment that begins there. */
function endOf(messages: readonly HistoryMessage[], first: number): number {
  let chars = 0;
  let end = first;
  do {
    chars += messages[end]?.data.length ?? 0;
    end += 1;
  } while (end < messages.length && end - first < segment_messages_max && chars < segment_chars_max);
  return end;
}

/** Columns of a segment, with the lowest and highest number, time and place in the order of arrival. */
function packed(messages: readonly HistoryMessage[]) {
  const bounds = (of: (message: HistoryMessage) => number) => {
    const values = messages.map(of);
    return [Math.min(...values), Math.max(...values)] as const;
  };
  const [lo_seq, hi_seq] = bounds(({ seq }) => seq);
  const [lo_ms, hi_ms] = bounds(({ time_ms }) => time_ms);
  const [arrived_lo_ms, arrived_hi_ms] = bounds(({ arrived_ms = 0 }) => arrived_ms);
  const body = packSegment(messages);
  const size = { messages: messages.length, bytes: body.length };
  return { lo_seq, hi_seq, lo_ms, hi_ms, arrived_lo_ms, arrived_hi_ms, ...size, body };
}

export async function insertSegments(
  queries: Queries,
  kit_id: string,
  segments: readonly Segment[],
): Promise<void> {
  const rows = segments.map((segment) => ({ kit_id, ...segment, misdated: segment.misdated ? 1 : 0 }));
  await insertRows(queries, 'history', rows);
}

/** Notes the days to which messages were added, or from which some were erased: their figures have to be made again. */
export async function noteChanged(
  queries: Queries,
  kit_id: string,
  parts: readonly Pick<Segment, 'day' | 'misdated' | 'lo_ms'>[],
): Promise<void> {
  const byDay = Map.groupBy(
    parts.filter(({ misdated }) => !misdated),
    ({ day }) => day,
  );
  const changed = [...byDay].map(([day, some]) => {
    return { kit_id, day, mark: 1, changed: 1, lo_ms: Math.min(...some.map(({ lo_ms }) => lo_ms)) };
  });
  const clauses = `ON CONFLICT (kit_id, day) DO UPDATE SET mark = history_changed.mark + 1, changed = 1,
    lo_ms = CASE WHEN history_changed.changed = 1 AND history_changed.lo_ms < excluded.lo_ms
      THEN history_changed.lo_ms ELSE excluded.lo_ms END`;
  await insertRows(queries, 'history_changed', changed, clauses);
}

/**
 * The parts without messages that are stored already: the service forgets numbers beyond its limits, and a kit may send such a message again. Those of an epoch are looked for together: a hostile kit can make each message a part.
 */
async function withoutKnown(
  queries: Queries,
  kit_id: string,
  parts: readonly Part[],
): Promise<readonly Part[]> {
  const left: Part[] = [];
  for (const some of Map.groupBy(parts, (part) => `${part.class} ${part.epoch}`).values()) {
    await turn();
    const known = await knownOf(queries, kit_id, some);
    for (const part of some) {
      const messages = part.messages.filter((message) => !known.has(identityOf(message)));
      if (messages.length > 0) left.push({ ...part, messages });
    }
  }
  return left;
}

/** Which of the messages are stored already. The parts are of one class and epoch. */
async function knownOf(
  queries: Queries,
  kit_id: string,
  parts: readonly Part[],
): Promise<ReadonlySet<string>> {
  const [first] = parts;
  const seqs = parts.flatMap(({ messages }) => messages.map(({ seq }) => seq)).sort((a, b) => a - b);
  const [lowest, highest] = [seqs[0], seqs.at(-1)];
  const known = new Set<string>();
  if (!first || lowest === undefined || highest === undefined) return known;
  const rows = await sql(queries)`SELECT id, lo_seq, hi_seq FROM history
    WHERE kit_id = ${kit_id} AND class = ${first.class} AND epoch = ${first.epoch}
      AND lo_seq <= ${highest} AND hi_seq >= ${lowest}`;
  // One by one: a kit may make all of its segments overlap.
  for (const row of rows) {
    if (!hasBetween(seqs, Number(row['lo_seq']), Number(row['hi_seq']))) continue;
    await turn();
    const body = await readBody(queries, kit_id, String(row['id']));
    for (const { channel, epoch, seqs: its } of body ? await openSegment(body) : [])
      for (const seq of its) if (hasBetween(seqs, seq, seq)) known.add(identityOf({ channel, epoch, seq }));
  }
  return known;
}

/** Whether one of the numbers, which are in order, is between these, both included. */
function hasBetween(seqs: readonly number[], from: number, to: number): boolean {
  let [low, high] = [0, seqs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((seqs[middle] ?? 0) < from) low = middle + 1;
    else high = middle;
  }
  return (seqs[low] ?? Infinity) <= to;
}
