/** Stores what was received in one transaction: each message once, whatever the order and however often it comes. */
import type { Json } from '../../contract/json.ts';
import type { CloudAck } from '../../contract/tasks.ts';
import { ack_ranges_max } from '../../contract/tasks.ts';
import type { Message, Reception } from '../ingest/read-message.ts';
import { applyMessage } from './apply.ts';
import type { Queries } from './database.ts';
import {
  count,
  type Count,
  forgetOldEpochs,
  type KnownRanges,
  lockKits,
  readRanges,
  writeRanges,
} from './commit-rows.ts';
import { addToRanges, type Range } from './ranges.ts';
import type { Change, Committed } from './store.ts';

/** What came of one kit, from all receptions of the transaction. */
interface Delivery {
  readonly kit_id: string;
  readonly messages: Message[];
  readonly cleared: string[];
  refused: number;
  heard_ms: number;
}

/** Runs inside a transaction. */
export async function commitReceptions(
  queries: Queries,
  receptions: readonly Reception[],
  now_ms: number,
): Promise<Committed> {
  const deliveries = deliveriesOf(receptions, now_ms);
  const new_kits = await lockKits(
    queries,
    deliveries.map(({ kit_id }) => kit_id),
  );
  const known = await readRanges(queries, deliveries.flatMap(epochsOf));
  const changes: Change[] = [];
  const acks: { kit_id: string; ack: CloudAck }[] = [];
  const seen: KitEpoch[] = [];
  const counts: Count[] = [];
  // Kits have nothing in common: over a network their statements need not wait for each other.
  const applied = deliveries.map(async (delivery) => {
    const separated = separate(delivery, known);
    const { fresh } = separated;
    return { delivery, separated, done: await applyDelivery(queries, { delivery, fresh, now_ms }) };
  });
  for (const { delivery, separated, done } of await all(applied)) {
    const { kit_id, heard_ms } = delivery;
    changes.push(...done.changes);
    acks.push(...separated.epochs.map(({ epoch, ranges }) => ({ kit_id, ack: ackOf(epoch, ranges) })));
    seen.push(...separated.epochs.filter(({ isMore }) => isMore));
    const { received, duplicates } = separated;
    counts.push({ kit_id, received, duplicates, refused: done.refused, heard_ms });
  }
  await writeRanges(queries, seen);
  for (const { kit_id } of seen.filter(({ isNew }) => isNew)) await forgetOldEpochs(queries, kit_id);
  await count(queries, counts);
  return { changes, acks, new_kits };
}

/** What all of them came to, when the last one is through: one that fails must leave none that still writes. */
async function all<T>(works: readonly Promise<T>[]): Promise<readonly T[]> {
  await Promise.allSettled(works);
  return Promise.all(works);
}

/** One for each kit, in the order of their ids, so that two replicas never wait for each other in a circle. */
function deliveriesOf(receptions: readonly Reception[], now_ms: number): readonly Delivery[] {
  const byKit = new Map<string, Delivery>();
  for (const reception of receptions) {
    const { kit_id, messages, cleared, faults } = reception;
    const delivery = byKit.get(kit_id) ?? { kit_id, messages: [], cleared: [], refused: 0, heard_ms: 0 };
    byKit.set(kit_id, delivery);
    delivery.messages.push(...messages);
    delivery.cleared.push(...cleared);
    delivery.refused += faults.length;
    delivery.heard_ms = Math.max(delivery.heard_ms, spokenAt(reception, now_ms));
  }
  return [...byKit.values()].sort((a, b) => (a.kit_id < b.kit_id ? -1 : 1));
}

interface Work {
  readonly delivery: Delivery;
  readonly fresh: readonly Message[];
  readonly now_ms: number;
}

async function applyDelivery(queries: Queries, { delivery, fresh, now_ms }: Work) {
  const { kit_id, cleared } = delivery;
  const changes: Change[] = [];
  let { refused } = delivery;
  for (const message of fresh) {
    const applied = await applyMessage(queries, { kit_id, message, now_ms });
    if ('fault' in applied) refused += 1;
    else changes.push(...applied);
  }
  for (const asset_id of cleared) changes.push(...(await clearAsset(queries, kit_id, asset_id)));
  return { changes, refused };
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

interface KitEpoch {
  readonly kit_id: string;
  readonly epoch: number;
  readonly ranges: readonly Range[];
  /** Something was added. */
  readonly isMore: boolean;
  /** Nothing of this epoch was known. */
  readonly isNew: boolean;
}

/** Which messages were not seen before. Presence stands outside the sequence and is looked at each time. */
function separate({ kit_id, messages }: Delivery, known: KnownRanges) {
  const fresh: Message[] = messages.filter(({ channel }) => channel.kind === 'state');
  const counted = messages.filter(({ channel }) => channel.kind !== 'state');
  const epochs: KitEpoch[] = [];
  let received = 0;
  for (const [epoch, ofEpoch] of Map.groupBy(counted, (message) => message.epoch)) {
    const before = known(kit_id, epoch);
    const unseen = new Map<number, Message>();
    for (const message of ofEpoch) if (!isIn(before, message.seq)) unseen.set(message.seq, message);
    const { ranges } = addToRanges(before, [...unseen.keys()]);
    received += unseen.size;
    fresh.push(...unseen.values());
    epochs.push({ kit_id, epoch, ranges, isMore: unseen.size > 0, isNew: before.length === 0 });
  }
  return { fresh, epochs, received, duplicates: counted.length - received };
}

function epochsOf({ kit_id, messages }: Delivery): readonly (readonly [kit_id: string, epoch: number])[] {
  const epochs = messages.filter(({ channel }) => channel.kind !== 'state').map(({ epoch }) => epoch);
  return [...new Set(epochs)].map((epoch) => [kit_id, epoch]);
}

/** The lowest ranges first, and no more than a message may hold. */
export function ackOf(epoch: number, ranges: readonly Range[]): CloudAck {
  return { epoch, ranges: ranges.slice(0, ack_ranges_max).map(([first, last]) => [first, last]) };
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
