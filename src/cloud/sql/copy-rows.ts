/** Copies the rows of one database into another: from the SQLite file of a service that has outgrown it to PostgreSQL. */
import { insertRows } from './many-rows.ts';
import type { Database, Queries, Row, SqlValue } from './database.ts';
import { steps } from './tables.ts';

/** Rows of one statement: a segment of the history may have hundreds of kilobytes. */
const rows_at_once = 50;
/** What a database says of itself. */
const own_names: ReadonlySet<unknown> = new Set(['schema_version', 'writers_from', 'history_leader']);

const tables = steps.flatMap(({ adds }) =>
  adds.flatMap((each) => (each.kind === 'table' ? [each.name] : [])),
);

/** Whether a service has stored anything there. */
export async function isEmpty(queries: Queries): Promise<boolean> {
  for (const table of ['kits', 'api_keys', 'webhooks'])
    if ((await queries.all(`SELECT 1 AS here FROM ${table} LIMIT 1`)).length > 0) return false;
  return true;
}

/** Copies everything or nothing; returns the number of rows. `from` is SQLite, of any version of the tables that this program reads. */
export async function copyRows(from: Queries, to: Database): Promise<number> {
  return to.transaction(async (queries) => {
    let copied = 0;
    for (const table of tables) {
      for (let after = 0; ;) {
        const rows = await from.all(
          `SELECT rowid AS row_id, * FROM ${table} WHERE rowid > ? ORDER BY rowid LIMIT ?`,
          after,
          rows_at_once,
        );
        const last = rows.at(-1);
        if (!last) break;
        after = Number(last['row_id']);
        const wanted = rows.filter(({ name }) => table !== 'service' || !own_names.has(name));
        const clauses = table === 'service' ? 'ON CONFLICT (name) DO UPDATE SET value = excluded.value' : '';
        await insertRows(queries, table, wanted.map(withValues), clauses);
        copied += wanted.length;
      }
    }
    return copied;
  });
}

function withValues(row: Row): Readonly<Record<string, SqlValue>> {
  const own = Object.entries(row).filter(([name]) => name !== 'row_id');
  return Object.fromEntries(own.map(([name, value]) => [name, valueOf(value)]));
}

/** As SQLite returns it. */
function valueOf(value: unknown): SqlValue {
  return typeof value === 'string' || typeof value === 'number' || value instanceof Uint8Array ? value : null;
}
