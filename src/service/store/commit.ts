/** Stores receptions in one transaction: each message once, independent of order and repetition. */
import type { Json } from '../../contract/json.ts';
import type { CloudAck } from '../../contract/tasks.ts';
import type { Message, Reception } from '../ingest/read-message.ts';
import { type FeedArrival, putFeeds, readFeed } from './apply/apply-feeds.ts';
import { isAboutState } from './apply/about-state.ts';
import { applyMessage, droppedIn } from './apply/apply.ts';
import { observed } from './apply/observed.ts';
import { enqueue } from '../webhooks/enqueue.ts';
import { eventsOf } from '../webhooks/events.ts';
import { type Landing, land, sizeOf, type WholeBatch } from '../history/landing.ts';
import { withoutSuperseded } from './apply/superseded.ts';
import { takeKitFix } from './partner-sync.ts';
import type { Queries } from './sql/database.ts';
import { count, type Count, lockKits } from './commit-rows.ts';
import { type Numbers, ReceivedNumbers } from './received/received-numbers.ts';
import { stateOf } from './rows.ts';
import type { Change, Committed } from './store.ts';

/** The messages of one kit, from all receptions of the transaction. */
interface Delivery {
  readonly kit_id: string;
  readonly messages: Message[];
  /** Batches as they came. */
  readonly batches: WholeBatch[];
  /** Messages from the buffer of the kit. */
  readonly historical: Set<Message>;
  readonly cleared: string[];
  refused: number;
  heard_ms: number;
  vouched_ms: number | null;
  /** The kit itself has sent something now. */
  isLive: boolean;
  isImported: boolean;
  /** A birth is among the messages. */
  isBorn: boolean;
}

/** Runs inside a transaction. */
export async function commitReceptions(
  queries: Queries,
  receptions: readonly Reception[],
  { now_ms, keepsHistory }: { readonly now_ms: number; readonly keepsHistory: boolean },
): Promise<Committed> {
  const deliveries = deliveriesOf(receptions, now_ms);
  const { new_kits, not_online } = await lockKits(
    queries,
    deliveries.map(({ kit_id }) => kit_id),
  );
  const known = await ReceivedNumbers.read(queries, deliveries.flatMap(numbersOf));
  const changes: Change[] = [];
  const acks: { kit_id: string; ack: CloudAck }[] = [];
  const counts: Count[] = [];
  // Kits are independent: over a network their statements need not wait for each other.
  const applied = deliveries.map(async (delivery) => {
    const separated = separate(delivery, known);
    const { fresh } = separated;
    return { delivery, separated, done: await applyDelivery(queries, { delivery, fresh, now_ms }) };
  });
  const results = await all(applied);
  const feeds = await putFeeds(
    queries,
    results.flatMap(({ done }) => done.feeds),
  );
  const landings = keepsHistory ? results.map(landingOf) : [];
  for (const [index, { delivery, separated, done }] of results.entries()) {
    const { kit_id, heard_ms, vouched_ms } = delivery;
    const landing = landings[index];
    changes.push(...done.changes);
    acks.push(...separated.acks.map((ack) => ({ kit_id, ack })));
    for (const { epoch, rows } of separated.fresh.flatMap(droppedIn)) known.drop({ kit_id, epoch, rows });
    const { received, duplicates } = separated;
    const refused = done.refused + (feeds.refused.get(kit_id) ?? 0);
    const landed = landing ? sizeOf(landing) : 0;
    counts.push({ kit_id, received, duplicates, refused, heard_ms, vouched_ms, landed });
  }
  changes.push(...feeds.changes);
  await land(queries, landings, now_ms);
  const events = results.flatMap(({ delivery, done }) =>
    delivery.isImported ? [] : eventsOf(delivery.kit_id, done),
  );
  await enqueue(queries, events, now_ms);
  await known.write(queries, now_ms);
  await count(queries, counts, now_ms);
  const without_presence = deliveries
    .filter(({ kit_id, isLive, messages }) => isLive && not_online.has(kit_id) && !messages.some(isState))
    .map(({ kit_id }) => kit_id);
  const births = deliveries.filter(({ isBorn }) => isBorn).map(({ kit_id }) => kit_id);
  return { changes, acks, births, new_kits, without_presence, has_events: events.length > 0 };
}

/** Returns all results after the last one has settled: after a failure no other work may still be writing. */
async function all<T>(works: readonly Promise<T>[]): Promise<readonly T[]> {
  await Promise.allSettled(works);
  return Promise.all(works);
}

/** Groups the receptions by kit, in the order of their ids, so that two replicas never deadlock. */
function deliveriesOf(receptions: readonly Reception[], now_ms: number): readonly Delivery[] {
  const byKit = new Map<string, Delivery>();
  for (const reception of receptions) {
    const { kit_id, messages, cleared, faults } = reception;
    const delivery = byKit.get(kit_id) ?? {
      kit_id,
      messages: [],
      batches: [],
      historical: new Set<Message>(),
      cleared: [],
      refused: 0,
      heard_ms: 0,
      vouched_ms: null,
      isLive: false,
      isImported: false,
      isBorn: false,
    };
    byKit.set(kit_id, delivery);
    delivery.messages.push(...messages);
    if (reception.packed) delivery.batches.push({ body: reception.packed, messages });
    if (reception.historical) for (const message of messages) delivery.historical.add(message);
    delivery.cleared.push(...cleared);
    delivery.refused += faults.length;
    delivery.heard_ms = Math.max(delivery.heard_ms, sentAt(reception, now_ms));
    if (isVouched(reception)) delivery.vouched_ms = now_ms;
    delivery.isImported ||= reception.imported === true;
    delivery.isBorn ||= holdsBirth(reception);
    delivery.isLive ||= isSentByKit(reception);
  }
  return [...byKit.values()].sort((a, b) => (a.kit_id < b.kit_id ? -1 : 1));
}

interface Work {
  readonly delivery: Delivery;
  readonly fresh: readonly Message[];
  readonly now_ms: number;
}

/** What was applied of a delivery. */
interface Done {
  readonly changes: readonly Change[];
  readonly feeds: readonly FeedArrival[];
  readonly refused: number;
  /** What belongs into the history. */
  readonly kept: readonly Message[];
}

/** Stores a fix of a partner asset, apart from the feeds; other feeds are stored together later. */
async function takeFeed(
  queries: Queries,
  feed: FeedArrival,
  now_ms: number,
): Promise<Pick<Done, 'changes' | 'feeds'>> {
  const changes = await takeKitFix(queries, feed, now_ms);
  return changes ? { changes, feeds: [] } : { changes: [], feeds: [feed] };
}

async function applyDelivery(queries: Queries, { delivery, fresh, now_ms }: Work): Promise<Done> {
  const { kit_id } = delivery;
  const changes: Change[] = [];
  const feeds: FeedArrival[] = [];
  const kept: Message[] = [];
  let { refused } = delivery;
  for (const message of withoutSuperseded(fresh, delivery.historical)) {
    const feed = feedArrivalOf(message, delivery);
    if (typeof feed === 'object') {
      const taken = await takeFeed(queries, feed, now_ms);
      changes.push(...taken.changes);
      feeds.push(...taken.feeds);
      continue;
    }
    const applied = feed ?? (await applyMessage(queries, { kit_id, message, now_ms }));
    if (typeof applied === 'string' || 'fault' in applied) refused += 1;
    else changes.push(...applied);
    // Presence is read again at each connection to the broker: only the first time is news.
    if (isState(message) && Array.isArray(applied) && applied.length > 0) kept.push(message);
  }
  for (const message of fresh)
    if (!isState(message) && message.refused === undefined) kept.push(observed(message));
  changes.push(...(await clearAssets(queries, delivery)));
  return { changes, feeds, refused, kept };
}

/** A message of a feed, or its fault; undefined for any other message. */
function feedArrivalOf(message: Message, { kit_id, historical }: Delivery): FeedArrival | string | undefined {
  const { channel, refused } = message;
  if (channel.kind !== 'feed' && channel.kind !== 'event') return undefined;
  if (refused !== undefined || isAboutState(channel.feed)) return undefined;
  const { asset_id, feed } = channel;
  return readFeed({ kit_id, asset_id, feed, message, historical: historical.has(message) });
}

function landingOf({ delivery, done }: { readonly delivery: Delivery; readonly done: Done }): Landing {
  const kept = new Set(done.kept);
  const batches = delivery.batches.filter(
    ({ messages }) => messages.length > 0 && messages.every((each) => kept.has(each)),
  );
  for (const { messages } of batches) for (const message of messages) kept.delete(message);
  return { kit_id: delivery.kit_id, messages: [...kept], batches };
}

/**
 * Returns when the kit sent the reception, by the clock of the service. Retained messages and wills count with the time
 * they were written.
 */
function sentAt(reception: Reception, now_ms: number): number {
  const { messages, retained } = reception;
  if (isSentByKit(reception) || (!retained && holdsBirth(reception))) return now_ms;
  return Math.min(now_ms, Math.max(0, ...messages.map(({ time_ms }) => time_ms)));
}

/** A retained birth: the kit is connected to the broker now, though it may have said nothing for long. */
function isVouched(reception: Reception): boolean {
  return reception.retained && holdsBirth(reception);
}

function holdsBirth({ messages }: Reception): boolean {
  return messages.some((message) => isState(message) && isBirth(message.data));
}

/** Returns whether the kit itself has sent this now: neither retained nor a will. */
function isSentByKit({ messages, retained }: Reception): boolean {
  return !retained && (messages.length === 0 || messages.some((message) => !isState(message)));
}

function isBirth(data: Json): boolean {
  return typeof data === 'object' && data !== null && Reflect.get(data, 'online') === true;
}

/** Separates new messages from duplicates. Presence is outside the sequence and is always applied. */
function separate({ kit_id, messages }: Delivery, known: ReceivedNumbers) {
  const fresh: Message[] = messages.filter(isState);
  const acks: CloudAck[] = [];
  let received = 0;
  let duplicates = 0;
  for (const [epoch, ofEpoch] of countedByEpoch(messages)) {
    const bySeq = new Map(ofEpoch.map((message) => [message.seq, message]));
    const { unseen, ranges } = known.add({ kit_id, epoch, seqs: [...bySeq.keys()] });
    for (const [seq, message] of bySeq) if (unseen.has(seq)) fresh.push(message);
    received += unseen.size;
    duplicates += ofEpoch.length - unseen.size;
    acks.push({ epoch, ranges: ranges.map(([first, last]) => [first, last]) });
  }
  return { fresh, acks, received, duplicates };
}

function isState({ channel }: Message): boolean {
  return channel.kind === 'state';
}

function countedByEpoch(messages: readonly Message[]): ReadonlyMap<number, readonly Message[]> {
  return Map.groupBy(
    messages.filter((message) => !isState(message)),
    ({ epoch }) => epoch,
  );
}

function numbersOf({ kit_id, messages }: Delivery): readonly Numbers[] {
  return [...countedByEpoch(messages)].map(([epoch, ofEpoch]) => ({
    kit_id,
    epoch,
    seqs: ofEpoch.map(({ seq }) => seq),
  }));
}

/**
 * Removes assets that were cleared with an empty retained payload, which has no stamp. Only kits of contract 1.0 remove an
 * asset with it alone; later ones send a stamped removal before, and the empty payload is ignored.
 */
async function clearAssets(queries: Queries, { kit_id, cleared }: Delivery): Promise<Change[]> {
  if (cleared.length === 0) return [];
  const [kit] = await queries.all('SELECT state FROM kits WHERE kit_id = ?', kit_id);
  const state = kit?.['state'];
  if (typeof state === 'string' && removesWithStamp(stateOf.parse(state).contract)) return [];
  const changes: Change[] = [];
  for (const asset_id of cleared) {
    const gone = await queries.all(
      'UPDATE assets SET gone = 1 WHERE kit_id = ? AND asset_id = ? AND gone = 0 AND partner = 0 RETURNING asset_id',
      kit_id,
      asset_id,
    );
    changes.push(...gone.map((): Change => ({ kind: 'asset_gone', kit_id, asset_id })));
  }
  return changes;
}

/** `contract`: major.minor. */
function removesWithStamp(contract: string): boolean {
  const [major = 0, minor = 0] = contract.split('.').map(Number);
  return major > 1 || (major === 1 && minor >= 1);
}
