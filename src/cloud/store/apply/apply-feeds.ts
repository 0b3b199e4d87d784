/** Stores the newest message of each feed of a commit with as few statements as possible: most messages are of feeds. */
import type { Json, JsonObject } from '../../../contract/json.ts';
import { channelOf } from '../../../contract/topics.ts';
import { isNewer, type Order, type Refusal } from '../../read-message.ts';
import { clause, listed, raw, sql, type Queries, type Row } from '../../sql/database.ts';
import { inPortions } from '../../sql/many-rows.ts';
import type { Change, FeedArrival } from '../../stored/stored.ts';
import { texts } from '../../texts.ts';
import { forgetGone } from './newest.ts';

/** Feeds of one kit. */
export const feeds_of_kit_max = 2_048;
/** Characters of one message of a feed; 64 neighbours of a radio take half of it. */
const feed_chars_max = 64 * 1024;
const feed_name_max = 64;

/** Reads a message of a feed; a sentence when it violates the contract. */
export function readFeed(arrival: Omit<FeedArrival, 'data'>): FeedArrival | string {
  const { feed, message } = arrival;
  if (feed.length === 0 || feed.length > feed_name_max) return texts.feed_name(feed_name_max);
  return isObject(message.data) ? { ...arrival, data: message.data } : texts.no_object;
}

/** The data was read as JSON before: a schema would look at each of its values once more. */
function isObject(data: Json): data is JsonObject {
  return typeof data === 'object' && data !== null && !Array.isArray(data);
}

interface Newest extends FeedArrival {
  readonly text: string;
  /** All messages of this feed, in order. */
  readonly all: readonly FeedArrival[];
}

interface StoredFeeds {
  readonly changes: readonly Change[];
  /** Why messages were not taken, by kit. */
  readonly refused: ReadonlyMap<string, readonly Refusal[]>;
}

/** Stores the newest of each feed unless the row has a newer stamp. */
export async function putFeeds(queries: Queries, arrivals: readonly FeedArrival[]): Promise<StoredFeeds> {
  const refused = new Map<string, Refusal[]>();
  const refuse = ({ kit_id, message: { channel, time_ms } }: FeedArrival, reason: string): void => {
    const its = refused.get(kit_id) ?? [];
    its.push({ channel: channelOf(channel), reason, time_ms });
    refused.set(kit_id, its);
  };
  const newest = newestOf(arrivals, refuse);
  const before = await readStamps(queries, newest.filter(hasOlderLive));
  const stored = new Set<string>();
  for (const row of await inPortions(newest, async (some) => putSome(queries, some))) stored.add(keyOf(row));
  const others = newest.filter((each) => !stored.has(keyOf(each)));
  const known = new Set<string>();
  for (const row of await inPortions(others, async (some) => readSome(queries, some))) known.add(keyOf(row));
  const waiting = others.filter((each) => !known.has(keyOf(each)));
  const roomy = new Set<string>();
  for (const kit_id of new Set(waiting.map((each) => each.kit_id)))
    if (await forgetGone(queries, kit_id)) roomy.add(kit_id);
  const again = waiting.filter(({ kit_id }) => roomy.has(kit_id));
  for (const row of await inPortions(again, async (some) => putSome(queries, some))) stored.add(keyOf(row));
  for (const each of waiting)
    if (!stored.has(keyOf(each)))
      for (const one of each.all) refuse(one, texts.too_many_feeds(feeds_of_kit_max));
  const changes = newest
    .filter((each) => stored.has(keyOf(each)))
    .flatMap((each) => changesOf(each, before.get(keyOf(each))));
  return { changes, refused };
}

/** More than one of its messages may be sent to sockets. */
function hasOlderLive({ all, message }: Newest): boolean {
  return all.some((each) => !each.historical && each.message !== message);
}

/** The stamps of the rows before this commit. */
async function readStamps(
  queries: Queries,
  some: readonly FeedArrival[],
): Promise<ReadonlyMap<string, Order>> {
  const rows = await inPortions(some, async (portion) => readSome(queries, portion));
  return new Map(rows.map((row) => [keyOf(row), { epoch: Number(row['epoch']), seq: Number(row['seq']) }]));
}

/** The newest message of each feed that is not too large; `refuse` is called with each that is, and newer than that. */
function newestOf(
  arrivals: readonly FeedArrival[],
  refuse: (arrival: FeedArrival, reason: string) => void,
): Newest[] {
  const byFeed = Map.groupBy(arrivals, keyOf);
  return [...byFeed.values()].flatMap((some) => {
    const all = some.sort((a, b) => a.message.epoch - b.message.epoch || a.message.seq - b.message.seq);
    for (let last = all.at(-1); last; last = all.at(-1)) {
      const text = JSON.stringify(last.data);
      if (text.length <= feed_chars_max) return [{ ...last, text, all }];
      refuse(last, texts.feed_too_large(text.length, feed_chars_max));
      all.pop();
    }
    return [];
  });
}

function keyOf(row: Row | FeedArrival): string {
  const { kit_id, asset_id, feed } = row;
  return `${String(kit_id)} ${String(asset_id)} ${String(feed)}`;
}

/**
 * Rows of a replica of an older version, which compares times otherwise, are ordered by epoch and seq with `unsynced` set. A
 * subquery with a value is looked up by the key; for EXISTS beside OR, PostgreSQL would read the whole table for each statement.
 */
async function putSome(queries: Queries, some: readonly Newest[]): Promise<readonly Row[]> {
  const rows = some.map(({ kit_id, asset_id, feed, text, message: { time_ms, epoch, seq } }) => {
    const stamp = clause`CAST(${time_ms} AS BIGINT), CAST(${epoch} AS BIGINT), CAST(${seq} AS BIGINT)`;
    return clause`(${kit_id}, ${asset_id}, ${feed}, ${text}, ${stamp})`;
  });
  return sql(queries)`INSERT INTO feeds (kit_id, asset_id, feed, data, time_ms, epoch, seq, unsynced)
    SELECT new.column1, new.column2, new.column3, new.column4, new.column5, new.column6, new.column7, 1
    FROM (VALUES ${listed(rows)}) AS new
    WHERE (SELECT 1 FROM feeds WHERE kit_id = new.column1 AND asset_id = new.column2 AND feed = new.column3) = 1
      OR (SELECT COUNT(*) FROM feeds WHERE kit_id = new.column1) < ${raw(String(feeds_of_kit_max))}
    ON CONFLICT (kit_id, asset_id, feed) DO UPDATE SET data = excluded.data, time_ms = excluded.time_ms,
      epoch = excluded.epoch, seq = excluded.seq, unsynced = excluded.unsynced
      WHERE (excluded.epoch, excluded.seq) > (feeds.epoch, feeds.seq)
    RETURNING kit_id, asset_id, feed`;
}

async function readSome(queries: Queries, some: readonly FeedArrival[]): Promise<readonly Row[]> {
  const keys = some.map(({ kit_id, asset_id, feed }) => clause`(${kit_id}, ${asset_id}, ${feed})`);
  return sql(queries)`SELECT kit_id, asset_id, feed, epoch, seq FROM feeds
    WHERE (kit_id, asset_id, feed) IN (VALUES ${listed(keys)})`;
}

/**
 * The newest, and before it what came live in the same commit and is newer than the row was: an event that lasts shorter than a
 * commit is an event, and a message that was delayed is not current.
 */
function changesOf({ all, ...newest }: Newest, before: Order | undefined): Change[] {
  return all
    .filter(({ message, historical }) => !historical || message === newest.message)
    .filter(({ message }) => before === undefined || isNewer(message, before))
    .map(({ kit_id, asset_id, feed, message, data }) => ({
      kind: 'feed',
      kit_id,
      asset_id,
      message: { feed, time_ms: message.time_ms, data },
    }));
}
