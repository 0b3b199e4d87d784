/**
 * Kits that operators have removed. The broker keeps their last words retained and delivers them at each connect: only a kit that
 * sends something itself comes back (NorthernMan54/homebridge-tasmota#9, owntracks/talk#161).
 */
import { labelName } from './kits.ts';
import { alarmOf } from '../stored/plain-rows.ts';
import { KitAlarms } from '../alarms/kit-alarms.ts';
import { sinceName } from '../history/record.ts';
import { texts } from '../sql/columns.ts';
import { clause, listed, raw, sql, type Queries } from '../sql/database.ts';
import { steps } from '../sql/tables.ts';
import type { Change, StoreContext } from '../stored/stored.ts';
import { enqueue, purgeMessages } from '../webhooks/enqueue.ts';
import { alarmEvents } from '../webhooks/events.ts';
import type { Delivery } from './delivery.ts';

const prefix = 'removed ';

/** Tables whose rows are of one kit each, and go with it; messages of webhooks count in books of their own. */
export const kit_tables: readonly string[] = steps.flatMap(({ adds }) =>
  adds.flatMap((each) =>
    each.kind === 'table' && each.columns.startsWith('kit_id TEXT') ? [each.name] : [],
  ),
);

export function removalStore({ database, announce }: StoreContext) {
  return {
    /** Deletes everything of the kit, and takes it from keys and webhooks. Its history is best erased before, in portions. */
    async removeKit(kit_id: string, now_ms: number): Promise<readonly Change[]> {
      const changes: readonly Change[] = [{ kind: 'kit_gone', kit_id }];
      await database.transaction(async (queries) => {
        // Commits of the kit either end before, or see that it is removed.
        await sql(queries)`UPDATE kits SET kit_id = kit_id WHERE kit_id = ${kit_id}`;
        await purgeMessages(queries, clause`kit_id = ${kit_id}`);
        await endAlarms(queries, kit_id, now_ms);
        for (const name of kit_tables) await sql(queries)`DELETE FROM ${raw(name)} WHERE kit_id = ${kit_id}`;
        const names = [labelName(kit_id), sinceName(kit_id)];
        await sql(queries)`DELETE FROM service WHERE name IN (${listed(names)})`;
        await withdraw(queries, 'api_keys', 'key_id', kit_id);
        await withdraw(queries, 'webhooks', 'webhook_id', kit_id);
        await sql(queries)`INSERT INTO service (name, value) VALUES (${prefix + kit_id}, ${String(now_ms)})
          ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
        await announce(queries, changes);
      });
      await database.forget();
      return changes;
    },
  };
}

/** Who was told of an alarm is told of its end: incidents elsewhere would stay open. */
async function endAlarms(queries: Queries, kit_id: string, now_ms: number): Promise<void> {
  const rows = await sql(queries)`SELECT * FROM alarms WHERE kit_id = ${kit_id} AND closed_ms IS NULL`;
  const alarms = new KitAlarms(kit_id, rows.map(alarmOf), now_ms);
  for (const alarm of alarms.open) alarms.end(alarm, now_ms);
  await enqueue(queries, alarmEvents({ events: [], transitions: alarms.transitions }), now_ms);
}

/** Takes the kit from lists that name it. */
async function withdraw(queries: Queries, table: string, id: string, kit_id: string): Promise<void> {
  const [from, key] = [raw(table), raw(id)];
  const rows = await sql(queries)`SELECT ${key} AS id, kits FROM ${from} WHERE kits LIKE ${`%${kit_id}%`}`;
  for (const row of rows) {
    const kits = texts.parse(row['kits']).filter((each) => each !== kit_id);
    await sql(queries)`UPDATE ${from} SET kits = ${JSON.stringify(kits)} WHERE ${key} = ${String(row['id'])}`;
  }
}

/**
 * Deletes the rows that a commit has just made of removed kits which have sent nothing themselves, and returns these kits; the others
 * are removed no longer. `new_kits`: those among the deliveries that have no row of before.
 */
export async function dropRemoved(
  queries: Queries,
  deliveries: readonly Delivery[],
  new_kits: readonly string[],
): Promise<ReadonlySet<string>> {
  if (new_kits.length === 0) return new Set();
  const names = new_kits.map((kit_id) => `${prefix}${kit_id}`);
  const rows = await sql(queries)`SELECT name FROM service WHERE name IN (${listed(names)})`;
  const removed = new Set(rows.map(({ name }) => String(name).slice(prefix.length)));
  for (const { kit_id, isPresent } of deliveries) {
    if (!removed.has(kit_id)) continue;
    if (isPresent) {
      removed.delete(kit_id);
      await sql(queries)`DELETE FROM service WHERE name = ${prefix + kit_id}`;
    } else await sql(queries)`DELETE FROM kits WHERE kit_id = ${kit_id}`;
  }
  return removed;
}
