/** Changes what a vehicle has stored, and reads it back: only that shows what it holds now. */
import type { CommandContext } from '../../../src/toolkit/driver/command.ts';
import { CommandRefused, messageOf } from '../../../src/platform/errors.ts';
import { sleep } from '../../../src/platform/time.ts';
import { texts as command_texts } from '../commands/texts.ts';
import type { Situation } from '../vehicles/situation.ts';
import { compare, type Comparison } from './compare.ts';
import { download } from './download.ts';
import { command_waypoint, type MissionItem, type PlannedItem, type StoredItem } from './item.ts';
import { type MissionKind, ownItems } from '../vehicles/mission-kinds.ts';
import { texts } from './texts.ts';
import { ack_accepted, Transfer, TransferBusy } from './transfer.ts';
import { sendItems, type Sent } from './upload.ts';
import type { Addressee } from '../vehicles/addressee.ts';

/** Part of a task's time for the sending; the rest is for reading it back. */
const sending_share = 0.6;
/** A vehicle that restarts is back after this time, or the task ends without it. */
const read_back_max_ms = 30_000;
const read_back_pause_ms = 1_000;

export interface Storing {
  readonly kind: MissionKind;
  readonly context: CommandContext;
  readonly situation: Situation;
  /** Returns the vehicle as it is addressed now: it may have restarted, or changed its link. */
  readonly address: () => Addressee | undefined;
  /** Returns why nothing more may be sent. */
  readonly obstacle: () => string | undefined;
}

export interface Stored {
  readonly acknowledged: boolean;
  /** As read back, with the vehicle's own ones. */
  readonly items: readonly MissionItem[];
  readonly comparison: Comparison;
}

/** Resolves when the vehicle holds the items as sent; otherwise throws `CommandRefused` with what it holds. */
export async function storeItems(
  to: Addressee,
  planned: readonly PlannedItem[],
  storing: Storing,
): Promise<Stored> {
  const { kind, context, situation, obstacle } = storing;
  const own = ownItems(kind, situation.autopilot);
  const items = [...(own > 0 ? [homeItem(situation)] : []), ...planned.map(({ item }) => item)];
  const begun_ms = performance.now();
  const until_ms = begun_ms + context.remaining_ms() * sending_share;
  const sent = await sendItems(to, kind, items, { ...context, until_ms, obstacle });
  const all = planned.length;
  if (sent.is === 'busy') throw new CommandRefused(sent.reason);
  if (context.signal.aborted) throw new CommandRefused(stoppedText(to, sent, { own, all }));
  const held = await readBack(storing, sent.is === 'acknowledged' ? 'now' : 'when it is back');
  const failed = 'reason' in sent ? failure(sent, { own, all }) : undefined;
  if ('unread' in held) throw unread(to, held.unread, failed);
  const comparison = compare(items, held.items, own);
  // An ArduPilot that holds more has kept old items.
  if (comparison.same === items.length && held.items.length === items.length)
    return { acknowledged: sent.is === 'acknowledged', items: held.items, comparison };
  const other = to.contact.otherTransfer(begun_ms);
  const sentences = [
    failed,
    differenceIn(comparison, planned, own),
    ...(other === undefined ? [] : [texts.other_station(other)]),
  ].filter((each) => each !== undefined);
  const count = Math.max(0, held.items.length - own);
  const same = Math.max(0, comparison.same - own);
  throw new CommandRefused([...sentences, texts.holds(kind, { held: count, same, all })].join('; '));
}

function differenceIn(
  { differences: [first] }: Comparison,
  planned: readonly PlannedItem[],
  own: number,
): string | undefined {
  const path = first && planned[first.index - own]?.path;
  return first && path !== undefined ? texts.differs(path, first) : undefined;
}

function stoppedText(
  to: Addressee,
  sent: Sent,
  { own, all }: { readonly own: number; readonly all: number },
): string {
  const reason = 'reason' in sent ? sent.reason : texts.stopped(to.name);
  const done = { sent: Math.max(0, sent.sent - own), all };
  return command_texts.unknown_outcome(texts.ended_early(done, reason));
}

/** `failed`: what was known before. */
function unread(to: Addressee, reason: string, failed: string | undefined): CommandRefused {
  const sentence = texts.not_read_back(to.name, reason);
  return new CommandRefused(
    command_texts.unknown_outcome(failed === undefined ? sentence : `${failed}; ${sentence}`),
  );
}

function failure(
  sent: Extract<Sent, { readonly reason: string }>,
  { own, all }: { readonly own: number; readonly all: number },
): string {
  if (sent.is === 'refused') return sent.reason;
  return texts.ended_early({ sent: Math.max(0, sent.sent - own), all }, sent.reason);
}

/** Resolves when the vehicle holds nothing any more; otherwise throws `CommandRefused` with what it holds. */
export async function clearItems(
  to: Addressee,
  storing: Storing,
): Promise<{ readonly acknowledged: boolean }> {
  const { kind, context, situation } = storing;
  const refusal = await requestClearing(to, storing);
  if (context.signal.aborted) throw new CommandRefused(command_texts.unknown_outcome(texts.stopped(to.name)));
  const held = await readBack(storing, refusal === undefined ? 'now' : 'when it is back');
  if ('unread' in held) throw unread(to, held.unread, refusal);
  const left = held.items.length - ownItems(kind, situation.autopilot);
  if (left <= 0) return { acknowledged: refusal === undefined };
  const not_cleared = texts.not_cleared(to.name, kind, left);
  throw new CommandRefused(refusal === undefined ? not_cleared : `${refusal}; ${not_cleared}`);
}

/** Returns the reason without an acknowledgement. */
async function requestClearing(
  to: Addressee,
  { kind, context, obstacle }: Storing,
): Promise<string | undefined> {
  const until_ms = performance.now() + context.remaining_ms() * sending_share;
  const transfer = new Transfer(to, kind, { ...context, until_ms });
  try {
    await transfer.begin(
      texts.the_clearing(kind),
      () => {
        const reason = obstacle();
        if (reason !== undefined) throw new CommandRefused(reason);
        return to.contact.send('MISSION_CLEAR_ALL', transfer.target);
      },
      (since_ms) => (transfer.received('MISSION_ACK', since_ms)?.type === ack_accepted ? true : undefined),
    );
    return undefined;
  } catch (error) {
    if (error instanceof TransferBusy) throw error;
    transfer.abandon();
    return messageOf(error);
  }
}

/** Reads what the vehicle holds, again while there is time if it is not back yet. */
async function readBack(
  { kind, context, address }: Storing,
  when: 'now' | 'when it is back',
): Promise<{ readonly items: readonly MissionItem[] } | { readonly unread: string }> {
  const until_ms = performance.now() + (when === 'now' ? context.remaining_ms() : read_back_max_ms);
  for (;;) {
    const to = address();
    let why: string = texts.away;
    if (to) {
      try {
        const task = { ...context, until_ms };
        return { items: await download(to, kind, task, { from_pct: 60, to_pct: 100 }) };
      } catch (error) {
        why = messageOf(error);
      }
    }
    const left_ms = Math.min(until_ms - performance.now(), context.remaining_ms());
    if (left_ms < 2 * read_back_pause_ms || context.signal.aborted) return { unread: why };
    await sleep(read_back_pause_ms, context.signal);
  }
}

/** Item 0 of an ArduPilot, which it replaces by the home that it has. */
function homeItem({ home }: Situation): StoredItem {
  const { lat = 0, lon = 0, alt_amsl_m = 0 } = home ?? {};
  const params = { param1: 0, param2: 0, param3: 0, param4: 0 };
  const place = { x: Math.round(lat * 1e7), y: Math.round(lon * 1e7), z: alt_amsl_m, frame: 0 };
  return { ...params, ...place, command: command_waypoint, autocontinue: 1 };
}
