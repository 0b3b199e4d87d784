/** Stores the presence of a kit, and finds out when it connected or disconnected. */
import { json } from '../../../contract/json.ts';
import { connection_lost, isOfConnection, kitState } from '../../../contract/presence.ts';
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

type Known = NonNullable<StoredKit['state']>;

/** Undefined: a newer one is known. Its sequence counts connections, and a will was written long before it is sent: times do not order states. */
export async function applyState(
  queries: Queries,
  { kit_id, message, now_ms }: Arrival,
): Promise<AppliedState | { readonly fault: string } | undefined> {
  const read = readLenient(kitState, message.data);
  if ('fault' in read) return read;
  const [row] = await queries.all(
    'SELECT state, state_epoch, state_seq, since_ms FROM kits WHERE kit_id = ? AND (?, ?) > (state_epoch, state_seq)',
    kit_id,
    message.epoch,
    message.seq,
  );
  if (!row) return undefined;
  const since_ms = row['since_ms'] === null ? null : Number(row['since_ms']);
  const was = typeof row['state'] === 'string' ? stateOf.parse(row['state']) : undefined;
  const isWill = !read.data.online && read.data.reason === connection_lost;
  const isNoticed = isWill || message.unsynced;
  const time_ms = isNoticed ? await noticedAt(queries, { kit_id, was, now_ms }) : message.time_ms;
  const { said_ms, ...reported } =
    isWill && was && isNewerReport(row, message)
      ? { ...was, online: false, reason: read.data.reason }
      : { ...read.data, said_ms: saidAt(message, { isWill, time_ms }) };
  const isTurn = was?.online !== read.data.online;
  await queries.all(
    'UPDATE kits SET state = ?, state_epoch = ?, state_seq = ?, since_ms = ? WHERE kit_id = ?',
    JSON.stringify({ ...reported, said_ms }),
    message.epoch,
    message.seq,
    isTurn ? sinceOf({ isUnseen: isWill && !was, time_ms, now_ms }) : since_ms,
    kit_id,
  );
  const { epoch, seq } = message;
  const { online, reason } = reported;
  return {
    changes: [{ kind: 'kit', kit_id, ...(isTurn && { turned: { online, reason, epoch, seq, time_ms } }) }],
    kept: { ...message, time_ms, unsynced: false, data: json.parse(reported) },
  };
}

/** The last state of the same connection was written after its will, so that its report is the newer one. */
function isNewerReport(row: Row, will: Message): boolean {
  return Number(row['state_epoch']) === will.epoch && isOfConnection(Number(row['state_seq']), will.seq);
}

interface Noticing {
  readonly kit_id: string;
  readonly was: Known | undefined;
  readonly now_ms: number;
}

/**
 * When the service noticed what carries no time of its own: a will, which has the time of the connect, and a state of a kit whose
 * clock is not set. Never before the newest message of the kit: where its clock is ahead, the end would stand before what it ends.
 */
async function noticedAt(queries: Queries, { kit_id, was, now_ms }: Noticing): Promise<number> {
  const [newest] = await queries.all(
    `SELECT time_ms FROM (SELECT time_ms, epoch, seq FROM kit_parts WHERE kit_id = ?
       UNION ALL SELECT time_ms, epoch, seq FROM feeds WHERE kit_id = ?) AS known ORDER BY epoch DESC, seq DESC LIMIT 1`,
    kit_id,
    kit_id,
  );
  return Math.max(now_ms, was?.said_ms ?? 0, Number(newest?.['time_ms'] ?? 0));
}

/** When the kit made the report that its state has; undefined: a will that was written with an unset clock. */
function saidAt(
  message: Message,
  { isWill, time_ms }: { readonly isWill: boolean; readonly time_ms: number },
): number | undefined {
  if (!isWill) return time_ms;
  return message.unsynced ? undefined : message.time_ms;
}

/** By the clock of the service; null: that was before anybody looked. */
function sinceOf({
  isUnseen,
  time_ms,
  now_ms,
}: Readonly<Record<'time_ms' | 'now_ms', number>> & { readonly isUnseen: boolean }): number | null {
  return isUnseen ? null : Math.min(time_ms, now_ms);
}
