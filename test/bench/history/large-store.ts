/** A store of a hundred million messages: the segments of one kit and 30 days, made by the code of the service, copied for other kits. */
import { randomUUID } from 'node:crypto';
import { cut, insertSegments, noteChanged } from '../../../src/cloud/history/compactor.ts';
import { classOf, dayOf, type HistoryMessage } from '../../../src/cloud/history/message.ts';
import { rollUpDay } from '../../../src/cloud/history/figures.ts';
import type { Database } from '../../../src/cloud/sql/database.ts';
import { KitMessages, message_every_ms } from './kit-messages.ts';
import { day_ms } from '../../../src/platform/time.ts';

const days = 30;
const messages_of_day = day_ms / message_every_ms;

type Part = Parameters<typeof cut>[0];
type Segments = Awaited<ReturnType<typeof cut>>;

export interface Template {
  readonly kit: KitMessages;
  readonly segments: Segments;
  readonly messages: number;
  readonly from_ms: number;
  readonly to_ms: number;
}

/** 30 days that ended with the last day, a message each second. */
export async function makeTemplate(now_ms: number): Promise<Template> {
  const to_ms = dayOf(now_ms) * day_ms;
  const from_ms = to_ms - days * day_ms;
  const kit = new KitMessages(randomUUID(), from_ms);
  const segments: Segments = [];
  for (let day = 0; day < days; day += 1) {
    const parts = Map.groupBy(kit.take(messages_of_day), ({ channel }) => classOf(channel));
    for (const [its, messages] of parts) segments.push(...(await cut(partOf(its, messages), now_ms)));
  }
  return { kit, segments, messages: days * messages_of_day, from_ms, to_ms };
}

function partOf(its: Part['class'], messages: HistoryMessage[]): Part {
  const [first] = messages;
  return { class: its, day: dayOf(first?.time_ms ?? 0), epoch: first?.epoch ?? 0, misdated: false, messages };
}

/** Writes the template for as many kits as make up so many messages. Returns the kits. */
export async function fill(
  database: Database,
  { kit, segments, messages }: Template,
  messages_min: number,
): Promise<readonly string[]> {
  const kit_ids = [kit.kit_id];
  await database.transaction(async (queries) => {
    await queries.all('INSERT INTO kits (kit_id, heard_ms) VALUES (?, ?)', kit.kit_id, Date.now());
    await insertSegments(queries, kit.kit_id, segments);
    await noteChanged(queries, kit.kit_id, segments);
  });
  while (await rollUpDay(database, Date.now()));
  for (let stored = messages; stored < messages_min; stored += messages) {
    const kit_id = randomUUID();
    kit_ids.push(kit_id);
    await database.transaction(async (queries) => {
      await queries.all('INSERT INTO kits (kit_id, heard_ms) VALUES (?, ?)', kit_id, Date.now());
      for (const [table, columns] of Object.entries(copied)) {
        await queries.all(
          `INSERT INTO ${table} (kit_id, ${columns}) SELECT CAST(? AS TEXT), ${columns} FROM ${table} WHERE kit_id = ?`,
          kit_id,
          kit.kit_id,
        );
      }
    });
  }
  return kit_ids;
}

const copied = {
  history: 'id, class, day, epoch, lo_seq, hi_seq, lo_ms, hi_ms, messages, bytes, misdated, body',
  history_days: 'channel, day, to_ms, body',
  history_changed: 'day, mark, changed, lo_ms, rolled_ms',
} as const;
