/** Reads what `received-numbers.ts` keeps: how many numbers are missing, and which are stored. */
import type { CloudAck } from '../../../contract/tasks.ts';
import type { Queries, Row } from '../sql/database.ts';
import { NumberBlock } from './number-block.ts';
import { joinRanges, type Range, sizeOf } from './ranges.ts';
import { rangesOf } from '../rows.ts';

/** By kit: how many numbers lie between the lowest and the highest of an epoch and did not come. `where` is about `kit_id`. */
export async function readHoles(
  queries: Queries,
  where: string,
  ids: readonly string[],
): Promise<(kit_id: string) => number> {
  const blocks = await queries.all(
    `SELECT kit_id, epoch, SUM(numbers) AS numbers, MIN(lowest) AS lowest, MAX(highest) AS highest
     FROM received_blocks ${where} GROUP BY kit_id, epoch`,
    ...ids,
  );
  const received = await queries.all(`SELECT kit_id, epoch, ranges FROM received ${where}`, ...ids);
  const byEpoch = new Map(blocks.map((row) => [keyOf(row), row]));
  const holes = new Map<string, number>();
  for (const row of received) {
    const kit_id = String(row['kit_id']);
    const ofEpoch = holesOf(rangesOf.parse(row['ranges']), byEpoch.get(keyOf(row)));
    holes.set(kit_id, (holes.get(kit_id) ?? 0) + ofEpoch);
  }
  return (kit_id) => holes.get(kit_id) ?? 0;
}

/** A number that was forgotten and came again is counted twice, which must not make others look less than none. */
function holesOf(ranges: readonly Range[], blocks: Row | undefined): number {
  const bounds = blocks ? [Number(blocks['lowest']), Number(blocks['highest'])] : [];
  const first = Math.min(...bounds, ...ranges.slice(0, 1).map(([lowest]) => lowest));
  const last = Math.max(...bounds, ...ranges.slice(-1).map(([, highest]) => highest));
  if (last < first) return 0;
  return Math.max(0, last - first + 1 - sizeOf(ranges) - Number(blocks?.['numbers'] ?? 0));
}

/** Everything that is stored of a kit, newest epoch first; of any number of ranges. */
export async function readStored(queries: Queries, kit_id: string): Promise<readonly CloudAck[]> {
  const epochs = await queries.all(
    'SELECT epoch, ranges FROM received WHERE kit_id = ? ORDER BY epoch DESC',
    kit_id,
  );
  const blocks = await queries.all(
    'SELECT epoch, block, seen FROM received_blocks WHERE kit_id = ? AND block >= 0',
    kit_id,
  );
  const byEpoch = Map.groupBy(blocks, (row) => Number(row['epoch']));
  return epochs.map((row) => {
    const epoch = Number(row['epoch']);
    const inBlocks = (byEpoch.get(epoch) ?? []).flatMap((each) =>
      new NumberBlock(Number(each['block']), String(each['seen'])).ranges(),
    );
    const ranges = joinRanges(rangesOf.parse(row['ranges']), inBlocks);
    return { epoch, ranges: ranges.map(([first, last]) => [first, last]) };
  });
}

function keyOf(row: Row): string {
  return `${String(row['kit_id'])} ${Number(row['epoch'])}`;
}
