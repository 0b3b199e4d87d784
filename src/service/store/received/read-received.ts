/** Reads what `received-numbers.ts` keeps: how many numbers are missing, and which are stored. */
import type { CloudAck } from '../../../contract/tasks.ts';
import type { Queries, Row } from '../sql/database.ts';
import { NumberBlock } from './number-block.ts';
import { joinRanges, type Range, sizeOf } from './ranges.ts';
import { rangesOf } from '../rows.ts';

/** The numbers of a kit that did not come. */
export interface Holes {
  /** They lie between the lowest and the highest of their epoch, and the kit has not reported them as dropped. */
  readonly missing: number;
  /** The same of the epochs for which an earlier version did not keep the reports apart: these are not subtracted. */
  readonly unsorted: number;
  /** All reported messages that are kept by epoch. */
  readonly dropped: number;
}

const no_holes: Holes = { missing: 0, unsorted: 0, dropped: 0 };

/** By kit. `where` is about `kit_id`. */
export async function readHoles(
  queries: Queries,
  where: string,
  ids: readonly string[],
): Promise<(kit_id: string) => Holes> {
  const blocks = await queries.all(
    `SELECT kit_id, epoch, SUM(numbers) AS numbers, MIN(lowest) AS lowest, MAX(highest) AS highest
     FROM received_blocks ${where} GROUP BY kit_id, epoch`,
    ...ids,
  );
  const received = await queries.all(`SELECT kit_id, epoch, ranges, dropped FROM received ${where}`, ...ids);
  const byEpoch = new Map(blocks.map((row) => [keyOf(row), row]));
  const holes = new Map<string, Holes>();
  for (const row of received) {
    const kit_id = String(row['kit_id']);
    const ofEpoch = holesOf(rangesOf.parse(row['ranges']), byEpoch.get(keyOf(row)));
    const { missing, unsorted, dropped } = holes.get(kit_id) ?? no_holes;
    if (row['dropped'] === null) {
      holes.set(kit_id, { missing, unsorted: unsorted + ofEpoch, dropped });
      continue;
    }
    const of_epoch = Number(row['dropped']);
    // More may be dropped than lies between the numbers that came: that explains no hole of another epoch.
    const unexplained = Math.max(0, ofEpoch - of_epoch);
    holes.set(kit_id, { missing: missing + unexplained, unsorted, dropped: dropped + of_epoch });
  }
  return (kit_id) => holes.get(kit_id) ?? no_holes;
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
  const stored = epochs.map((row) => {
    const epoch = Number(row['epoch']);
    const inBlocks = (byEpoch.get(epoch) ?? []).flatMap((each) =>
      new NumberBlock(Number(each['block']), String(each['seen'])).ranges(),
    );
    const ranges = joinRanges(rangesOf.parse(row['ranges']), inBlocks);
    return { epoch, ranges: ranges.map(([first, last]): [number, number] => [first, last]) };
  });
  // Of some epochs it is only known what was dropped.
  return stored.filter(({ ranges }) => ranges.length > 0);
}

function keyOf(row: Row): string {
  return `${String(row['kit_id'])} ${Number(row['epoch'])}`;
}
