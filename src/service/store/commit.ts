/** Stores what was received in one transaction: each message once, whatever the order and however often it comes. */
import type { Json } from '../../contract/json.ts';
import type { CloudAck } from '../../contract/tasks.ts';
import { ack_ranges_max } from '../../contract/tasks.ts';
import type { Message, Reception } from '../ingest/read-message.ts';
import { applyMessage } from './apply.ts';
import type { Queries } from './database.ts';
import { addToRanges, type Range } from './ranges.ts';
import { rangesOf } from './rows.ts';
import type { Change, Committed } from './store.ts';

/** Epochs of one kit whose messages are remembered; a connector that starts every minute for an hour stays inside. */
export const epochs_max = 64;

/** What came of one kit, from all receptions of the transaction. */
interface Delivery {
  readonly messages: Message[];
  readonly cleared: string[];
  refused: number;
  heard_ms: number;
}

/** Runs inside a transaction. Kits are taken in the order of their ids, so that two replicas never wait for each other. */
export async function commitReceptions(
  queries: Queries,
  receptions: readonly Reception[],
  now_ms: number,
): Promise<Committed> {
  const byKit = new Map<string, Delivery>();
  for (const reception of receptions) {
    const { kit_id, messages, cleared, faults } = reception;
    const delivery = byKit.get(kit_id) ?? { messages: [], cleared: [], refused: 0, heard_ms: 0 };
    byKit.set(kit_id, delivery);
    delivery.messages.push(...messages);
    delivery.cleared.push(...cleared);
    delivery.refused += faults.length;
    delivery.heard_ms = Math.max(delivery.heard_ms, spokenAt(reception, now_ms));
  }
  const changes: Change[] = [];
  const acks: { kit_id: string; ack: CloudAck }[] = [];
  const new_kits: string[] = [];
  for (const kit_id of [...byKit.keys()].sort()) {
    const delivery = byKit.get(kit_id);
    if (!delivery) continue;
    const done = await commitDelivery(queries, { kit_id, delivery, now_ms });
    changes.push(...done.changes);
    acks.push(...done.acks.map((ack) => ({ kit_id, ack })));
    if (done.isNew) new_kits.push(kit_id);
  }
  return { changes, acks, new_kits };
}

interface Work {
  readonly kit_id: string;
  readonly delivery: Delivery;
  readonly now_ms: number;
}

async function commitDelivery(queries: Queries, work: Work) {
  const { kit_id, delivery, now_ms } = work;
  // Changes nothing of a kit that is there, and locks it: what follows reads and writes its ranges.
  const [before] = await queries.all(
    `INSERT INTO kits (kit_id) VALUES (?) ON CONFLICT (kit_id) DO UPDATE SET kit_id = excluded.kit_id RETURNING heard_ms`,
    kit_id,
  );
  const { fresh, seen, duplicates, acks } = await separate(queries, kit_id, delivery.messages);
  const changes: Change[] = [];
  let { refused } = delivery;
  for (const message of fresh) {
    const applied = await applyMessage(queries, { kit_id, message, now_ms });
    if ('fault' in applied) refused += 1;
    else changes.push(...applied);
  }
  for (const asset_id of delivery.cleared) changes.push(...(await clearAsset(queries, kit_id, asset_id)));
  await queries.all(
    `UPDATE kits SET received = received + ?, duplicates = duplicates + ?, refused = refused + ?,
       heard_ms = CASE WHEN heard_ms > ? THEN heard_ms ELSE ? END WHERE kit_id = ?`,
    seen,
    duplicates,
    refused,
    delivery.heard_ms,
    delivery.heard_ms,
    kit_id,
  );
  return { changes, acks, isNew: before?.['heard_ms'] === null };
}

/**
 * When the kit spoke, by the service's clock. What the broker had kept, and a will, which the broker sends, were said
 * when they were written; but a birth that the broker still keeps says that the broker has the kit connected now.
 */
function spokenAt({ messages, retained }: Reception, now_ms: number): number {
  const births = messages.filter(({ channel, data }) => channel.kind === 'state' && isBirth(data));
  const states = messages.filter(({ channel }) => channel.kind === 'state');
  const isOwnWord = !retained && (messages.length === 0 || states.length < messages.length);
  if (births.length > 0 || isOwnWord) return now_ms;
  return Math.min(now_ms, Math.max(0, ...messages.map(({ time_ms }) => time_ms)));
}

function isBirth(data: Json): boolean {
  return typeof data === 'object' && data !== null && Reflect.get(data, 'online') === true;
}

/** Which messages were not seen before. Presence stands outside the sequence and is looked at each time. */
async function separate(queries: Queries, kit_id: string, messages: readonly Message[]) {
  const fresh: Message[] = messages.filter(({ channel }) => channel.kind === 'state');
  const byEpoch = Map.groupBy(
    messages.filter(({ channel }) => channel.kind !== 'state'),
    ({ epoch }) => epoch,
  );
  const acks: CloudAck[] = [];
  let seen = 0;
  for (const [epoch, ofEpoch] of byEpoch) {
    const known = await readRanges(queries, kit_id, epoch);
    const unseen = new Map<number, Message>();
    for (const message of ofEpoch) if (!isIn(known, message.seq)) unseen.set(message.seq, message);
    const { ranges } = addToRanges(known, [...unseen.keys()]);
    if (unseen.size > 0) await writeRanges(queries, { kit_id, epoch, ranges });
    if (known.length === 0) await forgetOldEpochs(queries, kit_id);
    seen += unseen.size;
    fresh.push(...unseen.values());
    acks.push(ackOf(epoch, ranges));
  }
  const counted = messages.filter(({ channel }) => channel.kind !== 'state').length;
  return { fresh, seen, duplicates: counted - seen, acks };
}

/** The lowest ranges first, and no more than a message may hold. */
export function ackOf(epoch: number, ranges: readonly Range[]): CloudAck {
  return { epoch, ranges: ranges.slice(0, ack_ranges_max).map(([first, last]) => [first, last]) };
}

async function readRanges(queries: Queries, kit_id: string, epoch: number): Promise<readonly Range[]> {
  const [row] = await queries.all(
    'SELECT ranges FROM received WHERE kit_id = ? AND epoch = ?',
    kit_id,
    epoch,
  );
  return row ? rangesOf.parse(row['ranges']) : [];
}

async function writeRanges(
  queries: Queries,
  {
    kit_id,
    epoch,
    ranges,
  }: { readonly kit_id: string; readonly epoch: number; readonly ranges: readonly Range[] },
): Promise<void> {
  await queries.all(
    `INSERT INTO received (kit_id, epoch, ranges) VALUES (?, ?, ?)
     ON CONFLICT (kit_id, epoch) DO UPDATE SET ranges = excluded.ranges`,
    kit_id,
    epoch,
    JSON.stringify(ranges),
  );
}

async function forgetOldEpochs(queries: Queries, kit_id: string): Promise<void> {
  await queries.all(
    `DELETE FROM received WHERE kit_id = ? AND epoch NOT IN
       (SELECT epoch FROM received WHERE kit_id = ? ORDER BY epoch DESC LIMIT ?)`,
    kit_id,
    kit_id,
    epochs_max,
  );
}

export function isIn(ranges: readonly Range[], seq: number): boolean {
  let low = 0;
  let high = ranges.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const range = ranges[middle];
    if (!range) return false;
    if (seq < range[0]) high = middle - 1;
    else if (seq > range[1]) low = middle + 1;
    else return true;
  }
  return false;
}

/** An empty retained payload has no stamp: the asset is gone as of the announcement that is there. */
async function clearAsset(queries: Queries, kit_id: string, asset_id: string): Promise<Change[]> {
  const gone = await queries.all(
    'UPDATE assets SET gone = 1 WHERE kit_id = ? AND asset_id = ? AND gone = 0 AND partner = 0 RETURNING asset_id',
    kit_id,
    asset_id,
  );
  return gone.map(() => ({ kind: 'asset_gone', kit_id, asset_id }));
}
