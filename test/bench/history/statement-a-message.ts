/** The alternative: a statement for the newest value of each message, as the service had it before, and a row of JSONB for each. */
import type { Message, Reception } from '../../../src/cloud/read-message.ts';
import { putNewest } from '../../../src/cloud/store/apply/newest.ts';
import { count, lockKits } from '../../../src/cloud/stored/commit-rows.ts';
import { ReceivedNumbers } from '../../../src/cloud/stored/received/received-numbers.ts';
import type { Queries } from '../../../src/cloud/sql/database.ts';
import { places, portions } from '../../../src/cloud/sql/many-rows.ts';
import type { Change } from '../../../src/cloud/stored/stored.ts';
import { jsonObject } from '../../../src/contract/json.ts';
import { channelOf } from '../../../src/contract/topics.ts';

const rows_max = 2_048;

/** `bigint` times and JSONB data, with the two indexes that the questions of the history need. */
export const row_tables: readonly string[] = [
  `CREATE TABLE message_rows (kit_id TEXT NOT NULL, channel TEXT NOT NULL, epoch BIGINT NOT NULL, seq BIGINT NOT NULL,
     time_ms BIGINT NOT NULL, data JSONB NOT NULL, PRIMARY KEY (kit_id, epoch, seq))`,
  'CREATE INDEX message_rows_by_time ON message_rows (kit_id, channel, time_ms)',
];

/** Stores the newest values, one statement for each message. Kits are stored side by side. */
export async function applyEach(
  queries: Queries,
  receptions: readonly Reception[],
  now_ms: number,
): Promise<readonly Change[]> {
  const byKit = Map.groupBy(receptions, ({ kit_id }) => kit_id);
  const kit_ids = [...byKit.keys()].sort();
  await lockKits(queries, kit_ids);
  const messagesOf = (kit_id: string): Message[] =>
    (byKit.get(kit_id) ?? []).flatMap(({ messages }) => messages);
  const numbers = kit_ids.map((kit_id) => {
    const messages = messagesOf(kit_id);
    return { kit_id, epoch: messages[0]?.epoch ?? 0, seqs: messages.map(({ seq }) => seq) };
  });
  const known = await ReceivedNumbers.read(queries, numbers);
  for (const each of numbers) known.add(each);
  const changes = await Promise.all(
    kit_ids.map(async (kit_id) => {
      const ofKit: Change[] = [];
      for (const message of messagesOf(kit_id)) ofKit.push(...(await applyOne(queries, kit_id, message)));
      return ofKit;
    }),
  );
  await known.write(queries, now_ms);
  const counters = { duplicates: 0, refused: 0, heard_ms: now_ms, vouched_ms: null, landed: 0 };
  await count(
    queries,
    numbers.map(({ kit_id, seqs }) => ({ kit_id, received: seqs.length, ...counters })),
    now_ms,
  );
  return changes.flat();
}

async function applyOne(queries: Queries, kit_id: string, message: Message): Promise<Change[]> {
  const { channel, data, time_ms } = message;
  if (channel.kind === 'feed' || channel.kind === 'event') {
    const { asset_id, feed } = channel;
    const place = { table: 'feeds', key: { kit_id, asset_id, feed }, rows_max } as const;
    const put = await putNewest(queries, place, { data: JSON.stringify(data) }, message);
    if (put !== 'stored') return [];
    return [{ kind: 'feed', kit_id, asset_id, message: { feed, time_ms, data: jsonObject.parse(data) } }];
  }
  for (const [part, value] of Object.entries(data ?? {})) {
    const place = { table: 'kit_parts', key: { kit_id, part }, rows_max } as const;
    await putNewest(queries, place, { data: JSON.stringify(value) }, message);
  }
  return [{ kind: 'kit', kit_id }];
}

/** One row and one statement a message, pipelined. */
export async function insertRows(queries: Queries, receptions: readonly Reception[]): Promise<void> {
  await insertPortions(
    queries,
    rowsOf(receptions).map((row) => [row]),
  );
}

/** Up to 64 rows a statement. */
export async function insertManyRows(queries: Queries, receptions: readonly Reception[]): Promise<void> {
  await insertPortions(queries, [...portions(rowsOf(receptions))]);
}

type MessageRow = readonly [string, string, number, number, number, string];

function rowsOf(receptions: readonly Reception[]): MessageRow[] {
  return receptions.flatMap(({ kit_id, messages }) =>
    messages.map(({ channel, epoch, seq, time_ms, data }): MessageRow => {
      const text = JSON.stringify(data);
      return [kit_id, channelOf(channel), epoch, seq, time_ms, text];
    }),
  );
}

async function insertPortions(queries: Queries, some: readonly (readonly MessageRow[])[]): Promise<void> {
  await Promise.all(
    some.map(async (rows) =>
      queries.all(
        `INSERT INTO message_rows (kit_id, channel, epoch, seq, time_ms, data)
         VALUES ${places(rows, '(?, ?, ?, ?, ?, ?)')} ON CONFLICT DO NOTHING`,
        ...rows.flat(),
      ),
    ),
  );
}
