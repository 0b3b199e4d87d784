/** Stores the newest value of each part of the telemetry of kits with as few statements as possible. */
import { kitTelemetry } from '../../../contract/kit.ts';
import { readLenient } from '../../lenient.ts';
import { texts } from '../../texts.ts';
import { isNewer, type Message } from '../../read-message.ts';
import type { Queries, Row } from '../../sql/database.ts';
import { insertRows } from '../../sql/many-rows.ts';

/** A new message of the telemetry of a kit, on its way into the table. */
export interface TelemetryArrival {
  readonly kit_id: string;
  readonly message: Message;
  /** JSON text of each valid part. */
  readonly parts: ReadonlyMap<string, string>;
  /** Why other parts are refused; undefined: they are not. */
  readonly fault: string | undefined;
}

/** Reads a message of the telemetry; a sentence when it violates the contract as a whole. */
export function readTelemetry(kit_id: string, message: Message): TelemetryArrival | string {
  const { data } = message;
  if (typeof data !== 'object' || data === null || Array.isArray(data)) return texts.no_object;
  const parts = new Map<string, string>();
  const faults: string[] = [];
  for (const [part, value] of Object.entries(data)) {
    if (!Object.hasOwn(kitTelemetry.shape, part)) continue;
    const read = readLenient(kitTelemetry, { [part]: value });
    if ('fault' in read) faults.push(read.fault);
    else parts.set(part, JSON.stringify(Reflect.get(read.data, part) ?? null));
  }
  return { kit_id, message, parts, fault: faults.length > 0 ? faults.join('; ') : undefined };
}

interface Newest {
  readonly kit_id: string;
  readonly part: string;
  readonly text: string;
  readonly message: Message;
}

/** Stores the newest value of each part unless the row has a newer stamp. Returns the kits with a new value. */
export async function putTelemetry(
  queries: Queries,
  arrivals: readonly TelemetryArrival[],
): Promise<ReadonlySet<string>> {
  const newest = newestOf(arrivals);
  const stored = new Set<string>();
  for (const row of await putRows(queries, newest)) stored.add(keyOf(row));
  return new Set(newest.filter((each) => stored.has(keyOf(each))).map(({ kit_id }) => kit_id));
}

/** In the order of the kits, which are locked in this order. */
function newestOf(arrivals: readonly TelemetryArrival[]): readonly Newest[] {
  const newest = new Map<string, Newest>();
  for (const { kit_id, message, parts } of arrivals) {
    for (const [part, text] of parts) {
      const key = keyOf({ kit_id, part });
      const before = newest.get(key);
      if (!before || isNewer(message, before.message)) newest.set(key, { kit_id, part, text, message });
    }
  }
  return [...newest.values()];
}

function keyOf(row: Row | Pick<Newest, 'kit_id' | 'part'>): string {
  const { kit_id, part } = row;
  return `${String(kit_id)} ${String(part)}`;
}

/** `unsynced` makes replicas of an older version, which compare times otherwise, order these rows by epoch and seq as well. */
async function putRows(queries: Queries, newest: readonly Newest[]): Promise<readonly Row[]> {
  const rows = newest.map(({ kit_id, part, text: data, message: { time_ms, epoch, seq } }) => {
    return { kit_id, part, data, time_ms, epoch, seq, unsynced: 1 };
  });
  const clauses = `ON CONFLICT (kit_id, part) DO UPDATE SET data = excluded.data, time_ms = excluded.time_ms,
    epoch = excluded.epoch, seq = excluded.seq, unsynced = excluded.unsynced
    WHERE (excluded.epoch, excluded.seq) > (kit_parts.epoch, kit_parts.seq) RETURNING kit_id, part`;
  return insertRows(queries, 'kit_parts', rows, clauses);
}
