/** Stores messages of an export as a commit does, at the time of their arrival: values, numbers and history become what they were. */
import { json } from '../../../contract/json.ts';
import { readChannel } from '../../../contract/topics.ts';
import type { Message } from '../../ingest/read-message.ts';
import { commitReceptions } from '../../store/commit.ts';
import type { Queries } from '../../store/sql/database.ts';
import type { Committed } from '../../store/store.ts';
import { landUnnumbered } from '../landing.ts';
import type { HistoryMessage } from '../message.ts';

interface Portion {
  readonly kit_id: string;
  readonly messages: readonly HistoryMessage[];
  /** Milliseconds since 1970. */
  readonly arrived_ms: number;
}

export async function importMessages(
  queries: Queries,
  { kit_id, messages, arrived_ms }: Portion,
): Promise<Committed> {
  const read = messages.flatMap(messageOf);
  const numbered = read.filter(isNumbered);
  const reception = {
    kit_id,
    messages: numbered,
    cleared: [],
    retained: true,
    historical: true,
    imported: true,
    faults: [],
  };
  const committed = await commitReceptions(queries, [reception], { now_ms: arrived_ms, keepsHistory: true });
  // Presence and pushed fixes have no numbers of the sequence: the compactor finds out which of them are known.
  const others = read.filter((message) => !isNumbered(message));
  if (others.length > 0) await landUnnumbered(queries, { kit_id, messages: others, batches: [] }, arrived_ms);
  return committed;
}

/** None for a channel of a later version, which this one would not have stored either. */
function messageOf({ channel, epoch, seq, time_ms, unsynced, data }: HistoryMessage): readonly Message[] {
  const known = readChannel(channel);
  if (!known || known.kind === 'batch') return [];
  return [{ channel: known, epoch, seq, time_ms, unsynced, data: json.parse(JSON.parse(data)) }];
}

function isNumbered({ channel, epoch }: Message): boolean {
  return epoch > 0 && channel.kind !== 'state';
}
