/** Reads kits with the newest parts of their telemetry. */
import type { Queries, Row } from './sql/database.ts';
import { type Holes, readHoles } from './received/read-received.ts';
import { lossesOf } from './losses.ts';
import { jsonOf, stateOf } from './rows.ts';
import type { StoredKit } from './store.ts';

/** Kits in one statement: databases limit the number of parameters. */
const kits_at_once = 500;

/** The kits that are known among these, by id. */
export async function readKits(
  queries: Queries,
  kit_ids: readonly string[] | '*',
): Promise<readonly StoredKit[]> {
  if (kit_ids === '*') return readSome(queries, '', []);
  const kits: StoredKit[] = [];
  for (let at = 0; at < kit_ids.length; at += kits_at_once) {
    const some = kit_ids.slice(at, at + kits_at_once);
    kits.push(...(await readSome(queries, `WHERE kit_id IN (${some.map(() => '?').join(', ')})`, some)));
  }
  return kits;
}

async function readSome(queries: Queries, where: string, ids: readonly string[]): Promise<StoredKit[]> {
  const kits = await queries.all(`SELECT * FROM kits ${where} ORDER BY kit_id`, ...ids);
  const parts = byKit(
    await queries.all(`SELECT kit_id, part, data, time_ms FROM kit_parts ${where}`, ...ids),
  );
  const holesOf = await readHoles(queries, where, ids);
  return kits.map((row) => {
    const kit_id = String(row['kit_id']);
    return kitOf(row, { parts: parts.get(kit_id) ?? [], holes: holesOf(kit_id) });
  });
}

function kitOf(row: Row, { parts, holes }: { readonly parts: readonly Row[]; readonly holes: Holes }) {
  const count = (name: string): number => Number(row[name]);
  const dropped = count('dropped');
  // Epochs that an earlier version has stored share what is left of all reports.
  const unsorted = Math.max(0, holes.unsorted - Math.max(0, dropped + count('superseded') - holes.dropped));
  return {
    kit_id: String(row['kit_id']),
    state: row['state'] === null ? undefined : stateOf.parse(row['state']),
    // 0: only retained messages that could not be read.
    heard_ms: count('heard_ms') || null,
    vouched_ms: row['vouched_ms'] === null ? null : count('vouched_ms'),
    since_ms: row['since_ms'] === null ? null : count('since_ms'),
    parts: Object.fromEntries(
      parts.map((part) => [
        String(part['part']),
        { time_ms: Number(part['time_ms']), data: jsonOf.parse(part['data']) },
      ]),
    ),
    counts: {
      received: count('received'),
      duplicates: count('duplicates'),
      missing: holes.missing + unsorted,
      dropped,
      refused: count('refused'),
    },
    losses: lossesOf(row['losses']),
  };
}

function byKit(rows: readonly Row[]): Map<string, Row[]> {
  return Map.groupBy(rows, (row) => String(row['kit_id']));
}
