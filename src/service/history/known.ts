/** Leaves out what is stored already: the service forgets numbers beyond its limits, and a kit may send such a message again. */
import type { Queries } from '../store/sql/database.ts';
import { turn } from '../../platform/time.ts';
import { identityOf, type Part } from './message.ts';
import { bodyOf, openSegment } from './segment.ts';

/** The parts without known messages. Those of an epoch are looked for together: a hostile kit can make each message a part. */
export async function withoutKnown(
  queries: Queries,
  kit_id: string,
  parts: readonly Part[],
): Promise<readonly Part[]> {
  const left: Part[] = [];
  for (const some of Map.groupBy(parts, (part) => `${part.class} ${part.epoch}`).values()) {
    await turn();
    const known = await knownOf(queries, kit_id, some);
    for (const part of some) {
      const messages = part.messages.filter((message) => !known.has(identityOf(message)));
      if (messages.length > 0) left.push({ ...part, messages });
    }
  }
  return left;
}

/** Which of the messages are stored already. The parts are of one class and epoch. */
async function knownOf(
  queries: Queries,
  kit_id: string,
  parts: readonly Part[],
): Promise<ReadonlySet<string>> {
  const [first] = parts;
  const seqs = parts.flatMap(({ messages }) => messages.map(({ seq }) => seq)).sort((a, b) => a - b);
  const [lowest, highest] = [seqs[0], seqs.at(-1)];
  const known = new Set<string>();
  if (!first || lowest === undefined || highest === undefined) return known;
  const rows = await queries.all(
    `SELECT id, lo_seq, hi_seq FROM history
     WHERE kit_id = ? AND class = ? AND epoch = ? AND lo_seq <= ? AND hi_seq >= ?`,
    kit_id,
    first.class,
    first.epoch,
    highest,
    lowest,
  );
  // One by one: a kit may make all of its segments overlap.
  for (const row of rows) {
    if (!hasBetween(seqs, Number(row['lo_seq']), Number(row['hi_seq']))) continue;
    await turn();
    for (const { seq, identity } of await identitiesIn(queries, kit_id, String(row['id'])))
      if (hasBetween(seqs, seq, seq)) known.add(identity);
  }
  return known;
}

async function identitiesIn(queries: Queries, kit_id: string, id: string) {
  const rows = await queries.all('SELECT body FROM history WHERE kit_id = ? AND id = ?', kit_id, id);
  const groups = await Promise.all(rows.map(async (row) => openSegment(bodyOf(row))));
  return groups
    .flat()
    .flatMap(({ channel, epoch, seqs }) =>
      seqs.map((seq) => ({ seq, identity: identityOf({ channel, epoch, seq }) })),
    );
}

/** Whether one of the numbers, which are in order, is between these, both included. */
function hasBetween(seqs: readonly number[], from: number, to: number): boolean {
  let [low, high] = [0, seqs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((seqs[middle] ?? 0) < from) low = middle + 1;
    else high = middle;
  }
  return (seqs[low] ?? Infinity) <= to;
}
