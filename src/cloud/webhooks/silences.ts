/**
 * Queues `kit.offline` for kits that fell silent, though their presence at the broker is online, and `kit.online` when they send
 * again: the rule by which List Kits shows them offline, as events.
 */
import { isOnline, silent_after_ms } from '../api/views.ts';
import type { Queries } from '../sql/database.ts';
import { stateOf } from '../stored/rows.ts';
import { enqueue } from './enqueue.ts';
import { silenceOf, type WebhookEvent } from './events.ts';

/** Runs inside a transaction. Returns whether there were any. The column `silent_ms` has the start of the silence that was announced. */
export async function noteSilences(queries: Queries, now_ms: number): Promise<boolean> {
  const events = [...(await begun(queries, now_ms)), ...(await ended(queries, now_ms))];
  await enqueue(queries, events, now_ms);
  return events.length > 0;
}

async function begun(queries: Queries, now_ms: number): Promise<readonly WebhookEvent[]> {
  const rows = await queries.all(
    `SELECT kit_id, state, heard_ms, vouched_ms FROM kits
     WHERE silent_ms IS NULL AND state IS NOT NULL AND COALESCE(heard_ms, 0) <= ? AND COALESCE(vouched_ms, 0) <= ? ORDER BY kit_id`,
    now_ms - silent_after_ms,
    now_ms - silent_after_ms,
  );
  const events: WebhookEvent[] = [];
  for (const { kit_id, state, heard_ms, vouched_ms } of rows) {
    if (!stateOf.parse(state).online) continue;
    const present_ms = Math.max(Number(heard_ms ?? 0), Number(vouched_ms ?? 0));
    const [mine] = await queries.all(
      'UPDATE kits SET silent_ms = ? WHERE kit_id = ? AND silent_ms IS NULL RETURNING kit_id',
      present_ms,
      String(kit_id),
    );
    if (mine) events.push(silenceOf(String(kit_id), { online: false, present_ms, time_ms: now_ms }));
  }
  return events;
}

async function ended(queries: Queries, now_ms: number): Promise<readonly WebhookEvent[]> {
  const rows = await queries.all(
    `SELECT kit_id, state, heard_ms, vouched_ms, since_ms, silent_ms FROM kits
     WHERE silent_ms IS NOT NULL AND (heard_ms > silent_ms OR vouched_ms > silent_ms) ORDER BY kit_id`,
  );
  const events: WebhookEvent[] = [];
  for (const { kit_id, state, heard_ms, vouched_ms, since_ms, silent_ms } of rows) {
    const present_ms = Math.max(Number(heard_ms ?? 0), Number(vouched_ms ?? 0));
    const [mine] = await queries.all(
      'UPDATE kits SET silent_ms = NULL WHERE kit_id = ? AND silent_ms = ? RETURNING kit_id',
      String(kit_id),
      Number(silent_ms),
    );
    const presence = { state: stateOf.parse(state), heard_ms: present_ms, vouched_ms: present_ms };
    // A change of its presence meanwhile was an event itself.
    const isAnnounced = Number(since_ms ?? 0) > Number(silent_ms);
    if (!mine || isAnnounced || !isOnline(presence, now_ms)) continue;
    events.push(silenceOf(String(kit_id), { online: true, present_ms, time_ms: present_ms }));
  }
  return events;
}
