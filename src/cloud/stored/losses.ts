/**
 * Which messages of a kit were lost lately, and why: those that break the contract, and those that the kit reports as dropped. Losses of
 * one kind are counted together, with the newest one as the example.
 */
import { z } from 'zod';
import { cleanText } from '../../platform/foreign-text.ts';
import { readChannel } from '../../contract/topics.ts';
import { texts } from '../texts.ts';
import type { Queries } from '../sql/database.ts';
import type { Refusal } from '../read-message.ts';
import { day_ms } from '../../platform/time.ts';

const loss = z.object({
  /** When the newest of them was lost, by the clock of the service. */
  time_ms: z.number(),
  /** When they began to be counted: the first after a day without any. */
  since_ms: z.number(),
  /** The channel of a refused message; the lane of a dropped one. */
  what: z.string(),
  reason: z.string(),
  count: z.number(),
});
export type Loss = z.output<typeof loss>;

const losses = z.object({ refused: z.array(loss), dropped: z.array(loss) });
/** The newest first. */
export type Losses = z.output<typeof losses>;

export const no_losses: Losses = { refused: [], dropped: [] };

/** Kinds of each list; beyond it the kind that was seen least recently is forgotten. */
const kinds_max = 16;
const reason_chars_max = 400;
const what_chars_max = 200;

/** A column of `kits`; null: none yet. */
export function lossesOf(column: unknown): Losses {
  return typeof column === 'string' ? losses.parse(JSON.parse(column)) : no_losses;
}

/** How many were lost in the last day, of the kinds that are remembered. */
export function lostLately(some: readonly Loss[], now_ms: number): number {
  return some.filter((each) => isLate(each, now_ms)).reduce((sum, { count }) => sum + count, 0);
}

function isLate({ time_ms }: Loss, now_ms: number): boolean {
  return now_ms - time_ms < day_ms;
}

export type News = Pick<Loss, 'what' | 'reason' | 'count'>;

/** Refusals of one kind together: ids, numbers and quoted values make no other kind. */
export function newsOf(refusals: readonly Refusal[]): readonly News[] {
  const kinds = Map.groupBy(
    refusals.map(({ channel, reason }) => ({
      what: cleanText(channel).slice(0, what_chars_max),
      reason: cleanText(reason).slice(0, reason_chars_max),
    })),
    kindOf,
  );
  return [...kinds.values()].flatMap((some) => {
    const last = some.at(-1);
    return last ? [{ ...last, count: some.length }] : [];
  });
}

/** The same for two losses that differ in values only. */
export function kindOf({ what, reason }: Pick<Loss, 'what' | 'reason'>): string {
  return `${what} ${reason}`.replaceAll(
    /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|"(?:[^"\\]|\\.)*"|\d+/giu,
    '*',
  );
}

interface Lost {
  readonly refused?: readonly News[];
  readonly dropped?: readonly News[];
}

/** Adds what was lost now. Runs inside a transaction that has locked the kit. */
export async function noteLosses(
  queries: Queries,
  kit_id: string,
  { refused = [], dropped = [] }: Lost,
  now_ms: number,
): Promise<void> {
  if (refused.length === 0 && dropped.length === 0) return;
  await change(queries, kit_id, (known) => ({
    refused: added(known.refused, refused, now_ms),
    dropped: added(known.dropped, dropped, now_ms),
  }));
}

/** Forgets the reasons, which have values of the messages in them, whenever those were observed. */
export async function eraseLosses(
  queries: Queries,
  { kit_id, asset_id }: { readonly kit_id: string; readonly asset_id?: string | undefined },
): Promise<void> {
  const isErased = ({ what }: Loss): boolean => asset_id === undefined || assetIn(what) === asset_id;
  await change(queries, kit_id, ({ refused, dropped }) => ({
    refused: refused.map((each) => (isErased(each) ? { ...each, reason: texts.reason_erased } : each)),
    dropped,
  }));
}

export function assetIn(channel: string): string | null {
  const read = readChannel(channel);
  return read && 'asset_id' in read ? read.asset_id : null;
}

async function change(queries: Queries, kit_id: string, by: (known: Losses) => Losses): Promise<void> {
  const [row] = await queries.all('SELECT losses FROM kits WHERE kit_id = ?', kit_id);
  if (!row) return;
  const column = JSON.stringify(by(lossesOf(row['losses'])));
  await queries.all('UPDATE kits SET losses = ? WHERE kit_id = ?', column, kit_id);
}

function added(known: readonly Loss[], news: readonly News[], now_ms: number): Loss[] {
  const kinds = new Map(known.map((each) => [kindOf(each), each]));
  for (const each of news) {
    const kind = kindOf(each);
    const before = kinds.get(kind);
    const goesOn = before !== undefined && isLate(before, now_ms);
    kinds.set(kind, {
      what: each.what,
      reason: each.reason,
      time_ms: Math.max(now_ms, before?.time_ms ?? 0),
      since_ms: goesOn ? before.since_ms : now_ms,
      count: each.count + (goesOn ? before.count : 0),
    });
  }
  return [...kinds.values()].sort((a, b) => b.time_ms - a.time_ms).slice(0, kinds_max);
}
