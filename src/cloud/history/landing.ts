/** Stores what a commit brought of each kit, as it came; `compactor.ts` divides it later. Runs in the transaction of the commit. */
import { randomBytes } from 'node:crypto';
import type { Message } from '../read-message.ts';
import type { StoredFeed } from '../stored/stored.ts';
import { sql, type Queries, type Row } from '../sql/database.ts';
import { insertRows } from '../sql/many-rows.ts';
import { packSegment } from './segment.ts';
import { channelOf } from '../../contract/topics.ts';

/** A batch of which every message is new. */
export interface WholeBatch {
  readonly body: Uint8Array;
  readonly messages: readonly Message[];
}

export interface Landing {
  readonly kit_id: string;
  /** New messages that did not come in `batches`. */
  readonly messages: readonly Message[];
  readonly batches: readonly WholeBatch[];
}

/** With its place in the order of arrival. */
export interface ArrivedLanding extends Landing {
  readonly arrived_ms: number;
}

interface Landed {
  readonly kit_id: string;
  readonly arrived_ms: number;
  readonly messages: number;
  readonly body: Uint8Array;
}

/** Digits of the time in an id, so that ids rise with it, and of the count of a process. */
const id_digits = 14;
const count_digits = 6;
const counts = 16 ** count_digits;

/** Stores the messages of each kit. `kits.landed` counts them: with the other counters of a commit. */
export async function land(
  queries: Queries,
  landings: readonly ArrivedLanding[],
  now_ms: number,
): Promise<void> {
  const rows = landings.flatMap(landedOf).map(({ kit_id, arrived_ms, messages, body }) => {
    return { kit_id, id: newId(now_ms), landed_ms: now_ms, arrived_ms, messages, body };
  });
  await insertRows(queries, 'history_in', rows);
}

interface Most {
  readonly rows: number;
  readonly bytes: number;
  readonly messages?: number;
}

/** What landed first of a kit: up to the row that brings it to so many messages or bytes. */
export async function readLanded(queries: Queries, kit_id: string, most: Most): Promise<readonly Row[]> {
  const sizes = await sql(queries)`SELECT id, messages, LENGTH(body) AS bytes
    FROM history_in WHERE kit_id = ${kit_id} ORDER BY id LIMIT ${most.rows}`;
  const sum = { messages: 0, bytes: 0 };
  const last = sizes.findIndex((row) => {
    sum.messages += Number(row['messages']);
    sum.bytes += Number(row['bytes']);
    return sum.messages >= (most.messages ?? Infinity) || sum.bytes >= most.bytes;
  });
  const to = sizes.at(last);
  if (!to) return [];
  return sql(queries)`SELECT id, landed_ms, arrived_ms, messages, body FROM history_in
    WHERE kit_id = ${kit_id} AND id BETWEEN ${String(sizes[0]?.['id'])} AND ${String(to['id'])}
    ORDER BY id LIMIT ${most.rows}`;
}

/** How many messages `land` stores. */
export function sizeOf({ messages, batches }: Landing): number {
  return batches.reduce((sum, batch) => sum + batch.messages.length, messages.length);
}

interface Pushed {
  readonly kit_id: string;
  readonly fixes: readonly { readonly asset_id: string; readonly message: StoredFeed }[];
  readonly now_ms: number;
}

/** Fixes of one request in a millisecond, which their numbers distinguish. */
const fixes_at_once = 1_000;

/** Stores the fixes of partners, which no kit has numbered. */
export async function landFixes(queries: Queries, { kit_id, fixes, now_ms }: Pushed): Promise<void> {
  const landing = fixes.map(({ asset_id, message: { feed, time_ms, data } }, index) => ({
    channel: { kind: 'feed', asset_id, feed } as const,
    epoch: 0,
    seq: now_ms * fixes_at_once + index,
    time_ms,
    unsynced: false,
    data,
  }));
  await landUnnumbered(queries, { kit_id, messages: landing, batches: [] }, now_ms);
}

/** Stores messages whose numbers no commit counts. */
export async function landUnnumbered(queries: Queries, landing: Landing, now_ms: number): Promise<void> {
  // Greater than that of any commit before: two replicas may have different clocks, and a millisecond several commits.
  const [kit] = await sql(queries)`UPDATE kits SET
      landed_ms = CASE WHEN landed > 0 THEN landed_ms ELSE CAST(${now_ms} AS BIGINT) END,
      landed = landed + CAST(${sizeOf(landing)} AS BIGINT),
      arrived_ms = CASE WHEN arrived_ms >= CAST(${now_ms} AS BIGINT) THEN arrived_ms + 1
        ELSE CAST(${now_ms} AS BIGINT) END
    WHERE kit_id = ${landing.kit_id} RETURNING arrived_ms`;
  await land(queries, [{ ...landing, arrived_ms: Number(kit?.['arrived_ms'] ?? now_ms) }], now_ms);
}

let ids_made = 0;

/** An id of a row: rises with the time, within a millisecond with each call, and is another one in each process. */
export function newId(now_ms: number): string {
  ids_made = (ids_made + 1) % counts;
  const count = ids_made.toString(16).padStart(count_digits, '0');
  return `${String(now_ms).padStart(id_digits, '0')}-${count}${process_digits}`;
}

/** Two processes may write for one kit in the same millisecond. */
const process_digits = randomBytes(4).toString('hex');

function landedOf({ kit_id, arrived_ms, messages, batches }: ArrivedLanding): Landed[] {
  const whole = batches.map(({ body, messages: some }) => ({
    kit_id,
    arrived_ms,
    messages: some.length,
    body,
  }));
  if (messages.length === 0) return whole;
  const body = packSegment(
    messages.map(({ channel, epoch, seq, time_ms, unsynced, data }) => ({
      channel: channelOf(channel),
      epoch,
      seq,
      time_ms,
      unsynced,
      data: JSON.stringify(data),
    })),
  );
  return [...whole, { kit_id, arrived_ms, messages: messages.length, body }];
}
