/** Stores receptions in one transaction: each message once, independent of order and repetition. */
import { partnerFix } from '../../contract/partners.ts';
import type { CloudAck } from '../../contract/tasks.ts';
import { channelOf } from '../../contract/topics.ts';
import { land, type Landing, sizeOf } from '../history/landing.ts';
import { findReused, refusalOf } from '../history/reused.ts';
import { type Message, type Reception, isAboutState, type Refusal } from '../read-message.ts';
import { putFeeds, readFeed } from './apply/apply-feeds.ts';
import { type AppliedState, applyState, applyMessage, droppedIn } from './apply/apply.ts';
import { dropRemoved } from './removed-kits.ts';
import { putTelemetry, readTelemetry, type TelemetryArrival } from './apply/apply-telemetry.ts';
import { correctionOf, count, type Count, lockAndCount } from '../stored/commit-rows.ts';
import { deliveriesOf, type Delivery, expectedOf, isState, isValidNumbered } from './delivery.ts';
import { newsOf, noteLosses, assetIn } from '../stored/losses.ts';
import { takeKitFix } from './partners.ts';
import { type Numbers, ReceivedNumbers } from '../stored/received/received-numbers.ts';
import { stateOf } from '../stored/rows.ts';
import { sql, type Queries } from '../sql/database.ts';
import { allSettled } from '../sql/many-rows.ts';
import type { Change, Committed, Arrival, FeedArrival } from '../stored/stored.ts';
import { enqueue } from '../webhooks/enqueue.ts';
import { alarmEvents, eventsOf } from '../webhooks/events.ts';
import { attachFiles } from '../alarms/alarm-files.ts';
import { changeOf } from '../alarms/alarm-store.ts';
import { behindMs, type Lag, lagAfter } from '../alarms/clock-lag.ts';
import { followAlarms, isLate, type KitNews } from '../alarms/follow.ts';
import {
  isBuried,
  observedMs,
  readTombstones,
  readTombstonesOf,
  type Tombstones,
} from '../history/erasure.ts';

/** Runs inside a transaction. */
export async function commitReceptions(
  queries: Queries,
  receptions: readonly Reception[],
  { now_ms, keepsHistory }: { readonly now_ms: number; readonly keepsHistory: boolean },
): Promise<Committed> {
  const all = deliveriesOf(receptions, now_ms);
  const locked = await lockAndCount(
    queries,
    all.map((delivery) => expectedOf(delivery, keepsHistory)),
    now_ms,
  );
  const { not_online, arrived, lags } = locked;
  const removed = await dropRemoved(queries, all, locked.new_kits);
  const deliveries = all.filter(({ kit_id }) => !removed.has(kit_id));
  const expected = deliveries.map((delivery) => expectedOf(delivery, keepsHistory));
  const new_kits = locked.new_kits.filter((kit_id) => !removed.has(kit_id));
  const known = await ReceivedNumbers.read(queries, deliveries.flatMap(numbersOf));
  // Kits are independent: over a network their statements need not wait for each other.
  const applied = deliveries.map(async (delivery) => {
    const separated = separate(delivery, known);
    const { fresh, repeats } = separated;
    const found = await allSettled(repeats.map(async (some) => findReused(queries, delivery.kit_id, some)));
    const reused = [...separated.refused, ...found.flat()];
    return { delivery, separated, reused, done: await applyDelivery(queries, delivery, { fresh, now_ms }) };
  });
  const results = await allSettled(applied);
  const stored = await storeTogether(queries, { results, known, arrived, keepsHistory, now_ms });
  const refused = results.map(({ delivery: { kit_id }, reused, done }) => [
    ...done.refused,
    ...reused,
    ...(stored.feeds.refused.get(kit_id) ?? []),
  ]);
  const isNew = new Set(new_kits);
  const corrections = results.flatMap((result, index) => {
    const actual = countOf(result, stored.landings[index], refused[index]?.length ?? 0);
    return correctionOf(actual, expected[index] ?? actual, isNew.has(actual.kit_id));
  });
  await count(queries, corrections, now_ms);
  const reasons = await allSettled(
    results.map(async ({ delivery: { kit_id } }, index) =>
      noteRefused(queries, kit_id, refused[index] ?? [], now_ms),
    ),
  );
  // Events are history, and no alarm is made of one that is erased. Tasks and presence are the state of now.
  const eventful = results.filter(({ done }) => done.kept.some(isEvent));
  const erasedOf = await readTombstonesOf(
    queries,
    eventful.map(({ delivery }) => delivery.kit_id),
  );
  const alarms = await followAlarms(
    queries,
    results.map((result) => {
      const { kit_id } = result.delivery;
      return newsOfKit(result, stored, { now_ms, erased: erasedOf(kit_id), lag: lags.get(kit_id) });
    }),
    now_ms,
  );
  const attached = await attachFiles(
    queries,
    {
      changes: results.flatMap(({ done }) => done.changes),
      begun: alarms.transitions.flatMap(({ kind, alarm }) =>
        kind === 'closed' || !alarm.message ? [] : [alarm],
      ),
    },
    now_ms,
  );
  const events = [
    ...results.flatMap(({ delivery, done }) => (delivery.isImported ? [] : eventsOf(delivery.kit_id, done))),
    ...alarmEvents(alarms),
  ];
  await enqueue(queries, events, now_ms);
  const without_presence = deliveries
    .filter(({ kit_id, isLive, messages }) => isLive && not_online.has(kit_id) && !messages.some(isState))
    .map(({ kit_id }) => kit_id);
  return {
    changes: [...changesOf(results, stored, reasons.flat()), ...alarms.changes, ...attached.map(changeOf)],
    refused: reasons.flat(),
    acks: results.flatMap(({ delivery: { kit_id }, separated }) =>
      separated.acks.map((ack) => ({ kit_id, ack })),
    ),
    births: deliveries.filter(({ isBorn }) => isBorn).map(({ kit_id }) => kit_id),
    new_kits,
    without_presence,
    hasEvents: events.length > 0,
    files: results.flatMap(filesReported),
  };
}

/** What came of the delivery of one kit. */
interface Result {
  readonly delivery: Delivery;
  readonly separated: ReturnType<typeof separate>;
  /** Messages with the number of another one. */
  readonly reused: readonly Refusal[];
  readonly done: Done;
}

/** `measured`: kits with a new value of their telemetry. `landings`: in the order of the results; none without history. */
type StoredTogether = Awaited<ReturnType<typeof storeTogether>>;

interface Together {
  readonly results: readonly Result[];
  readonly known: ReceivedNumbers;
  readonly arrived: ReadonlyMap<string, number>;
  readonly keepsHistory: boolean;
  readonly now_ms: number;
}

/** Stores what needs few statements for all kits. No statement needs the answer of another: the server gets them at once. */
async function storeTogether(queries: Queries, { results, known, arrived, keepsHistory, now_ms }: Together) {
  for (const { delivery, separated } of results) {
    const { kit_id } = delivery;
    for (const { epoch, rows } of separated.fresh.flatMap(droppedIn)) known.drop({ kit_id, epoch, rows });
  }
  const landings = keepsHistory ? results.map(landingOf) : [];
  const feeds = putFeeds(
    queries,
    results.flatMap(({ done }) => done.feeds),
  );
  const telemetry = putTelemetry(
    queries,
    results.flatMap(({ done }) => done.telemetry),
  );
  await allSettled<unknown>([
    feeds,
    telemetry,
    land(
      queries,
      landings.map((landing) => ({ ...landing, arrived_ms: arrived.get(landing.kit_id) ?? now_ms })),
      now_ms,
    ),
    known.write(queries, now_ms),
  ]);
  return { feeds: await feeds, measured: await telemetry, landings };
}

/** What alarms are made of. Nothing of an import: it is history. */
function newsOfKit(
  { delivery, reused, done }: Result,
  { measured }: StoredTogether,
  {
    now_ms,
    erased,
    lag,
  }: { readonly now_ms: number; readonly erased: Tombstones; readonly lag: Lag | undefined },
): KitNews {
  const { kit_id, historical, isImported } = delivery;
  const isHistorical = (message: Message): boolean => historical.has(message);
  const isErased = (message: Message): boolean => {
    const asset_id = 'asset_id' in message.channel ? message.channel.asset_id : null;
    return isBuried(erased, asset_id, observedMs(message, now_ms));
  };
  if (isImported)
    return { kit_id, events: [], isHistorical, hasLate: false, isChanged: false, hasAssets: false, gone: [] };
  const events = done.kept
    .filter((message) => isEvent(message) && !isErased(message))
    .sort((a, b) => a.epoch - b.epoch || a.seq - b.seq);
  const kinds = new Set(done.changes.map(({ kind }) => kind));
  const hasTurned = done.changes.some((change) => change.kind === 'kit' && change.turned !== undefined);
  const live = done.kept.filter(
    (message) => !isState(message) && !message.unsynced && !isHistorical(message),
  );
  const newest_ms = live.reduce((newest, { time_ms }) => Math.max(newest, time_ms), -Infinity);
  const now_lag = delivery.isLive && live.length > 0 ? lagAfter(lag, now_ms - newest_ms, now_ms) : lag;
  const at_ms = now_ms - behindMs(now_lag, now_ms);
  return {
    kit_id,
    events,
    isHistorical,
    hasLate: done.kept.some((message) => !isState(message) && isLate(message, at_ms, isHistorical(message))),
    ...(now_lag !== lag && { lag: now_lag ?? null }),
    isChanged: measured.has(kit_id) || kinds.has('kit') || reused.length + done.refused.length > 0,
    hasAssets: hasTurned || kinds.has('asset') || kinds.has('asset_gone'),
    gone: done.changes.flatMap((change) => (change.kind === 'asset_gone' ? [change.asset_id] : [])),
  };
}

/** Also of a report that came before: the kit asks again when it gets no answer. */
function filesReported({ delivery: { kit_id, isImported }, separated }: Result): Committed['files'] {
  if (isImported) return [];
  return separated.fresh.flatMap(({ channel, data }) => {
    if (!('file_id' in channel) || typeof data !== 'object' || data === null) return [];
    const state: unknown = Reflect.get(data, 'state');
    return typeof state === 'string' ? [{ kit_id, file_id: channel.file_id, state }] : [];
  });
}

function isEvent({ channel }: Message): boolean {
  return channel.kind === 'event';
}

function countOf({ delivery, separated }: Result, landing: Landing | undefined, refused: number): Count {
  const { kit_id, heard_ms, vouched_ms } = delivery;
  const { received, duplicates } = separated;
  const landed = landing ? sizeOf(landing) : 0;
  return { kit_id, received, duplicates, refused, heard_ms, vouched_ms, landed };
}

function changesOf(
  results: readonly Result[],
  { feeds, measured }: StoredTogether,
  refused: Committed['refused'],
): readonly Change[] {
  const changed = new Set([...measured, ...refused.map(({ kit_id }) => kit_id)]);
  const others = results.flatMap(({ delivery: { kit_id }, done }): readonly Change[] =>
    changed.has(kit_id) ? [...done.changes, { kind: 'kit', kit_id }] : done.changes,
  );
  return [...others, ...feeds.changes];
}

/** Keeps the reasons, and returns them for the log. */
async function noteRefused(
  queries: Queries,
  kit_id: string,
  refusals: readonly Refusal[],
  now_ms: number,
): Promise<Committed['refused']> {
  const refused = newsOf(await withoutErased(queries, kit_id, refusals, now_ms));
  await noteLosses(queries, kit_id, { refused }, now_ms);
  return refused.map(({ what, reason, count }) => ({ kit_id, what, reason, count }));
}

/** What was applied of a delivery. `kept`: what belongs into the history. */
type Done = Awaited<ReturnType<typeof applyDelivery>>;

async function applyDelivery(
  queries: Queries,
  delivery: Delivery,
  { fresh, now_ms }: { readonly fresh: readonly Message[]; readonly now_ms: number },
) {
  const { kit_id } = delivery;
  const changes: Change[] = [];
  const feeds: FeedArrival[] = [];
  const telemetry: TelemetryArrival[] = [];
  const kept: Message[] = [];
  const refused = [...delivery.refused];
  const refuse = ({ channel, time_ms }: Message, reason: string): void =>
    void refused.push({ channel: channelOf(channel), reason, time_ms });
  for (const message of withoutSuperseded(fresh, delivery.historical)) {
    const arrival = feedArrivalOf(message, delivery) ?? telemetryArrivalOf(message, kit_id);
    if (typeof arrival === 'string') refuse(message, arrival);
    else if (arrival && 'parts' in arrival) {
      telemetry.push(arrival);
      if (arrival.fault !== undefined) refuse(message, arrival.fault);
    } else if (arrival) {
      // A fix of a partner asset is stored apart from the feeds; other feeds are stored together later.
      const moved = await takeKitFix(queries, arrival, now_ms);
      if (moved) changes.push(...moved);
      else feeds.push(arrival);
    } else {
      const applied = await applyOne(queries, { kit_id, message, now_ms });
      if ('fault' in applied) refuse(message, applied.fault);
      else changes.push(...applied.changes);
      if ('kept' in applied && applied.kept) kept.push(applied.kept);
    }
  }
  kept.push(...fresh.filter(isValidNumbered).map(observed));
  changes.push(...(await clearAssets(queries, delivery)));
  return { changes, feeds, telemetry, refused, kept };
}

/** Presence is read again at each connection to the broker: only the first time is news. */
async function applyOne(
  queries: Queries,
  arrival: Arrival,
): Promise<(Partial<AppliedState> & Pick<AppliedState, 'changes'>) | { readonly fault: string }> {
  const { message } = arrival;
  if (isState(message) && message.refused === undefined)
    return (await applyState(queries, arrival)) ?? { changes: [] };
  const applied = await applyMessage(queries, arrival);
  return 'fault' in applied ? applied : { changes: applied };
}

/** A message of a feed, or its fault; undefined for any other message. */
function feedArrivalOf(message: Message, { kit_id, historical }: Delivery): FeedArrival | string | undefined {
  const { channel, refused } = message;
  if (channel.kind !== 'feed' && channel.kind !== 'event') return undefined;
  if (refused !== undefined || isAboutState(channel.feed)) return undefined;
  const { asset_id, feed } = channel;
  const about = { kit_id, asset_id, feed, historical: historical.has(message) };
  return readFeed({ ...about, message: observed(message) });
}

/** A message of the telemetry, or its fault; undefined for any other message. */
function telemetryArrivalOf(message: Message, kit_id: string): TelemetryArrival | string | undefined {
  const isTelemetry = message.channel.kind === 'telemetry' && message.refused === undefined;
  return isTelemetry ? readTelemetry(kit_id, message) : undefined;
}

function landingOf({ delivery, done }: { readonly delivery: Delivery; readonly done: Done }): Landing {
  const kept = new Set(done.kept);
  const batches = delivery.batches.filter(
    ({ messages }) => messages.length > 0 && messages.every((each) => kept.has(each)),
  );
  for (const { messages } of batches) for (const message of messages) kept.delete(message);
  return { kit_id: delivery.kit_id, messages: [...kept], batches };
}

/** Separates new messages from duplicates. Presence is outside the sequence and is always applied. */
function separate({ kit_id, messages }: Delivery, known: ReceivedNumbers) {
  const fresh: Message[] = messages.filter(isState);
  const acks: CloudAck[] = [];
  /** By epoch: those whose numbers are stored already. */
  const repeats: Message[][] = [];
  const refused: Refusal[] = [];
  let received = 0;
  let duplicates = 0;
  for (const [epoch, ofEpoch] of countedByEpoch(messages)) {
    const bySeq = new Map(ofEpoch.map((message) => [message.seq, message]));
    const { unseen, ranges } = known.add({ kit_id, epoch, seqs: [...bySeq.keys()] });
    for (const [seq, message] of bySeq) if (unseen.has(seq) && message.isOwn !== true) fresh.push(message);
    for (const each of ofEpoch.length > bySeq.size ? ofEpoch : []) {
      const reused = unseen.has(each.seq) ? refusalOf(each, bySeq.get(each.seq)) : undefined;
      if (reused) refused.push(reused);
    }
    if (unseen.size < bySeq.size) repeats.push(ofEpoch.filter((each) => isRepeat(each, unseen)));
    received += unseen.size;
    duplicates += ofEpoch.length - unseen.size;
    acks.push({ epoch, ranges: ranges.map(([first, last]) => [first, last]) });
  }
  return { fresh, acks, repeats, refused, received, duplicates };
}

/** A repeated message whose content the history may have. */
function isRepeat(message: Message, unseen: ReadonlySet<number>): boolean {
  return !unseen.has(message.seq) && isValidNumbered(message) && message.isOwn !== true;
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
  const [kit] = await sql(queries)`SELECT state FROM kits WHERE kit_id = ${kit_id}`;
  const state = kit?.['state'];
  if (typeof state === 'string' && removesWithStamp(stateOf.parse(state).contract)) return [];
  const changes: Change[] = [];
  for (const asset_id of cleared) {
    const gone = await sql(queries)`UPDATE assets SET gone = 1 WHERE kit_id = ${kit_id}
      AND asset_id = ${asset_id} AND gone = 0 AND partner = 0 RETURNING asset_id`;
    changes.push(...gone.map((): Change => ({ kind: 'asset_gone', kit_id, asset_id })));
  }
  return changes;
}

/** `contract`: major.minor. */
function removesWithStamp(contract: string): boolean {
  const [major = 0, minor = 0] = contract.split('.').map(Number);
  return major > 1 || (major === 1 && minor >= 1);
}

/**
 * Returns the message with the time of its observation: a fix that was pushed at the kit with a `timestamp` is as old as that
 * says, while the message has the time of the push.
 */
function observed(message: Message): Message {
  const { channel, data, time_ms } = message;
  if (channel.kind !== 'feed' || channel.feed !== 'gps') return message;
  // Positions of drones have no source; to find that out with the schema costs more than to store them.
  if (typeof data !== 'object' || data === null || !('source' in data)) return message;
  const fix = partnerFix.safeParse(data).data;
  const fix_ms = fix ? Date.parse(fix.timestamp) : time_ms;
  return fix_ms < time_ms ? { ...message, time_ms: fix_ms } : message;
}

/** The messages that can change anything, in their order: of a backlog, newer ones of the same commit replace thousands. */
function withoutSuperseded(
  messages: readonly Message[],
  historical: ReadonlySet<Message>,
): readonly Message[] {
  if (messages.length < 2 || historical.size === 0) return messages;
  const seen = new Set<string>();
  const kept = new Set<Message>();
  const newestFirst = [...messages].sort((a, b) => b.epoch - a.epoch || b.seq - a.seq);
  for (const message of newestFirst) {
    const places = placesOf(message);
    if (!places || !historical.has(message) || places.some((place) => !seen.has(place))) kept.add(message);
    for (const place of places ?? []) seen.add(place);
  }
  return messages.filter((message) => kept.has(message));
}

/** The values that the message would replace; undefined: it replaces none. */
function placesOf({ channel, data, refused }: Message): readonly string[] | undefined {
  if (refused !== undefined) return undefined;
  if (channel.kind === 'telemetry' && typeof data === 'object' && data !== null) {
    return Object.keys(data).map((part) => `telemetry ${part}`);
  }
  const isValue =
    ['asset', 'commands', 'roster'].includes(channel.kind) ||
    (channel.kind === 'event' && channel.feed === 'asset_status');
  return isValue ? [channelOf(channel)] : undefined;
}

/** Those of messages that are not erased: late ones are erased as they arrive. */
async function withoutErased(
  queries: Queries,
  kit_id: string,
  refusals: readonly Refusal[],
  now_ms: number,
): Promise<readonly Refusal[]> {
  if (refusals.length === 0) return refusals;
  const erased = await readTombstones(queries, kit_id);
  return refusals.filter(({ channel, time_ms }) => {
    if (time_ms === undefined) return true;
    const observed_ms = observedMs({ time_ms, unsynced: false }, now_ms);
    return !isBuried(erased, assetIn(channel), observed_ms);
  });
}
