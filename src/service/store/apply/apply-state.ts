/** Stores the presence of a kit, and finds out when it connected or disconnected. */
import { json } from '../../../contract/json.ts';
import { connection_lost, isOfConnection, type KitState, kitState } from '../../../contract/presence.ts';
import { readLenient } from '../../ingest/lenient.ts';
import type { Message } from '../../ingest/read-message.ts';
import type { Queries, Row } from '../sql/database.ts';
import { stateOf } from '../rows.ts';
import type { Change, StoredKit } from '../store.ts';
import type { Arrival } from './apply.ts';

export interface AppliedState {
  readonly changes: readonly Change[];
  /** As it belongs into the history: with the time and the report that are true. */
  readonly kept: Message;
}

/** What the kit reported, and when. */
type Report = NonNullable<StoredKit['state']>;

/** The newest presence before this one. */
interface Known {
  readonly state: Report | undefined;
  readonly epoch: number;
  readonly seq: number;
  readonly since_ms: number | null;
}

/** Undefined: a newer one is known. Its sequence counts connections, and a will was written long before it is sent: times do not order states. */
export async function applyState(
  queries: Queries,
  { kit_id, message, now_ms }: Arrival,
): Promise<AppliedState | { readonly fault: string } | undefined> {
  const read = readLenient(kitState, message.data);
  if ('fault' in read) return read;
  const { epoch, seq } = message;
  const [row] = await queries.all(
    'SELECT state, state_epoch, state_seq, since_ms FROM kits WHERE kit_id = ? AND (?, ?) > (state_epoch, state_seq)',
    kit_id,
    epoch,
    seq,
  );
  if (!row) return undefined;
  const known = knownOf(row);
  const isTimed = !isWill(read.data) && !message.unsynced;
  const time_ms = isTimed ? message.time_ms : await noticedAt(queries, { kit_id, known, now_ms });
  const report = reportOf(read.data, { message, known, time_ms });
  const { said_ms: _, ...data } = report;
  const { online, reason } = data;
  const isTurn = known.state?.online !== online;
  // By the clock of the service. Null: that was before anybody looked.
  const turned_ms = isWill(data) && !known.state ? null : Math.min(time_ms, now_ms);
  await queries.all(
    'UPDATE kits SET state = ?, state_epoch = ?, state_seq = ?, since_ms = ? WHERE kit_id = ?',
    JSON.stringify(report),
    epoch,
    seq,
    isTurn ? turned_ms : known.since_ms,
    kit_id,
  );
  return {
    changes: [{ kind: 'kit', kit_id, ...(isTurn && { turned: { online, reason, epoch, seq, time_ms } }) }],
    kept: { ...message, time_ms, unsynced: false, data: json.parse(data) },
  };
}

function knownOf(row: Row): Known {
  return {
    state: typeof row['state'] === 'string' ? stateOf.parse(row['state']) : undefined,
    epoch: Number(row['state_epoch']),
    seq: Number(row['state_seq']),
    since_ms: row['since_ms'] === null ? null : Number(row['since_ms']),
  };
}

function isWill({ online, reason }: Pick<KitState, 'online' | 'reason'>): boolean {
  return !online && reason === connection_lost;
}

interface Reporting {
  readonly message: Message;
  readonly known: Known;
  readonly time_ms: number;
}

/** The newest report of the kit: the other states of a connection were written after its will. */
function reportOf(state: KitState, { message, known, time_ms }: Reporting): Report {
  if (!isWill(state)) return { ...state, said_ms: time_ms };
  const { online, reason } = state;
  const isOlder = known.epoch === message.epoch && isOfConnection(known.seq, message.seq);
  if (known.state && isOlder) return { ...known.state, online, reason };
  return { ...state, ...(!message.unsynced && { said_ms: message.time_ms }) };
}

interface Noticing extends Pick<Arrival, 'kit_id' | 'now_ms'> {
  readonly known: Known;
}

/**
 * When the service noticed what carries no time of its own: a will, which has the time of the connect, and a state of a kit whose
 * clock is not set. Never before the newest message of the kit: where its clock is ahead, the end would stand before what it ends.
 */
async function noticedAt(queries: Queries, { kit_id, known, now_ms }: Noticing): Promise<number> {
  const [newest] = await queries.all(
    `SELECT time_ms FROM (SELECT time_ms, epoch, seq FROM kit_parts WHERE kit_id = ?
       UNION ALL SELECT time_ms, epoch, seq FROM feeds WHERE kit_id = ?) AS known ORDER BY epoch DESC, seq DESC LIMIT 1`,
    kit_id,
    kit_id,
  );
  return Math.max(now_ms, known.state?.said_ms ?? 0, Number(newest?.['time_ms'] ?? 0));
}
