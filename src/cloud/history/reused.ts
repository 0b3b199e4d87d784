/**
 * Finds numbers that a kit gave to two messages, as after an old copy of its state was put back: the second one counts as a
 * duplicate and is not stored. A message that came again is as old as the one that is stored: only where the times show that it
 * cannot be that one are bodies read.
 */
import { isDeepStrictEqual } from 'node:util';
import { channelOf, readChannel } from '../../contract/topics.ts';
import type { Message, Refusal } from '../read-message.ts';
import { listed, sql, type Queries, type Row } from '../sql/database.ts';
import { jsonOf } from '../stored/rows.ts';
import { texts } from '../texts.ts';
import { history_classes } from './message.ts';
import { bodyOf, messagesOf, readBody } from './segment.ts';

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
  const segments = await sql(queries)`SELECT id, lo_seq, hi_seq, lo_ms, hi_ms FROM history
    WHERE kit_id = ${kit_id} AND class IN (${listed(history_classes)}) AND epoch = ${epoch}
      AND lo_seq <= ${Math.max(...seqs)} AND hi_seq >= ${Math.min(...seqs)} LIMIT ${segments_max}`;
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
export function refusalOf(message: Message, stored: Stored | undefined): Refusal | undefined {
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

/** A message as it is stored, as far as another one is compared with it. */
type Stored = Pick<Message, 'channel' | 'time_ms' | 'data'>;

/** The stored messages of the epoch in these segments, and in what has landed, by number. */
async function storedUnder(
  queries: Queries,
  { kit_id, ids, epoch }: { kit_id: string; ids: readonly string[]; epoch: number },
): Promise<ReadonlyMap<number, Stored>> {
  const divided = ids.map(async (id) => readBody(queries, kit_id, id));
  const landed = await sql(queries)`SELECT body FROM history_in WHERE kit_id = ${kit_id}
    ORDER BY id DESC LIMIT ${landed_max}`;
  const stored = new Map<number, Stored>();
  for (const body of [...(await Promise.all(divided)), ...landed.map(bodyOf)]) {
    for (const { channel: name, epoch: its, seq, time_ms, data } of body ? await messagesOf(body) : []) {
      const channel = readChannel(name);
      if (its !== epoch || !channel || channel.kind === 'state') continue;
      stored.set(seq, { channel, time_ms, data: jsonOf.parse(data) });
    }
  }
  return stored;
}
