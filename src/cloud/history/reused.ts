/**
 * Finds numbers that a kit gave to two messages, as after an old copy of its state was put back: the second one counts as a
 * duplicate and is not stored. A message that came again is as old as the one that is stored: only where the times show that it
 * cannot be that one are bodies read.
 */
import { isDeepStrictEqual } from 'node:util';
import { channelOf, readChannel } from '../../contract/topics.ts';
import type { Message, Refusal } from '../read-message.ts';
import { sql, type Queries, type Row } from '../sql/database.ts';
import { jsonOf } from '../stored/rows.ts';
import { texts } from '../texts.ts';
import { history_classes } from './message.ts';
import { bodyOf, messagesOf } from './segment.ts';

/** Duplicates of one epoch that are looked at: a number is hardly ever reused alone. */
const looked_at_max = 16;
const segments_max = 64;
/** What waits to be divided, the newest first. */
const landed_max = 256;

/** Returns which of `repeats`, messages of one epoch whose numbers are stored already, are other messages than the stored ones. */
export async function findReused(
  queries: Queries,
  kit_id: string,
  repeats: readonly Message[],
): Promise<readonly Refusal[]> {
  const some = repeats.slice(0, looked_at_max);
  const epoch = some[0]?.epoch;
  if (epoch === undefined) return [];
  const seqs = some.map(({ seq }) => seq);
  const segments = await queries.all(
    `SELECT id, lo_seq, hi_seq, lo_ms, hi_ms FROM history
     WHERE kit_id = ? AND class IN (${history_classes.map(() => '?').join(', ')}) AND epoch = ? AND lo_seq <= ? AND hi_seq >= ?
     LIMIT ${segments_max}`,
    kit_id,
    ...history_classes,
    epoch,
    Math.max(...seqs),
    Math.min(...seqs),
  );
  const [landed] = await sql(queries)`SELECT MAX(landed_ms) AS last_ms
    FROM history_in WHERE kit_id = ${kit_id}`;
  const last_ms = Number(landed?.['last_ms'] ?? Number.POSITIVE_INFINITY);
  const suspects = some.filter((message) => {
    const its = segments.filter((row) => isBetween(message.seq, row, 'seq'));
    return (
      !its.some((row) => isBetween(message.time_ms, row, 'ms')) &&
      (its.length > 0 || message.time_ms > last_ms)
    );
  });
  if (suspects.length === 0) return [];
  const ids = segments
    .filter((row) => suspects.some(({ seq }) => isBetween(seq, row, 'seq')))
    .map((row) => String(row['id']));
  const stored = await storedUnder(queries, { kit_id, ids, epoch });
  return suspects.flatMap((message) => refusalOf(message, stored.get(message.seq)) ?? []);
}

/** Why a message is not stored that has the number of a stored one; undefined when they are copies of one. */
export function refusalOf(
  message: Message,
  stored: Pick<Message, 'channel' | 'time_ms' | 'data'> | undefined,
): Refusal | undefined {
  if (!stored) return undefined;
  const { epoch, seq, time_ms } = message;
  const [channel, stored_channel] = [channelOf(message.channel), channelOf(stored.channel)];
  // A time is corrected later where the clock of the kit was not set.
  const isOther =
    channel !== stored_channel ||
    (time_ms !== stored.time_ms && !isDeepStrictEqual(message.data, stored.data));
  return isOther ? { channel, reason: texts.number_reused(epoch, seq, stored_channel), time_ms } : undefined;
}

function isBetween(value: number, row: Row, unit: 'seq' | 'ms'): boolean {
  return value >= Number(row[`lo_${unit}`]) && value <= Number(row[`hi_${unit}`]);
}

/** The stored messages of the epoch in these segments, and in what has landed, by number. */
async function storedUnder(
  queries: Queries,
  {
    kit_id,
    ids,
    epoch,
  }: { readonly kit_id: string; readonly ids: readonly string[]; readonly epoch: number },
): Promise<ReadonlyMap<number, Pick<Message, 'channel' | 'time_ms' | 'data'>>> {
  const divided = ids.map(async (id) =>
    queries.all('SELECT body FROM history WHERE kit_id = ? AND id = ?', kit_id, id),
  );
  const landed = await queries.all(
    `SELECT body FROM history_in WHERE kit_id = ? ORDER BY id DESC LIMIT ${landed_max}`,
    kit_id,
  );
  const stored = new Map<number, Pick<Message, 'channel' | 'time_ms' | 'data'>>();
  for (const row of [...(await Promise.all(divided)).flat(), ...landed]) {
    for (const { channel: name, epoch: its, seq, time_ms, data } of await messagesOf(bodyOf(row))) {
      const channel = readChannel(name);
      if (its !== epoch || !channel || channel.kind === 'state') continue;
      stored.set(seq, { channel, time_ms, data: jsonOf.parse(data) });
    }
  }
  return stored;
}
