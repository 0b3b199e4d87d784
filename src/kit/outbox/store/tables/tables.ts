/** All tables of one open handle, joined. A handle that broke, or whose transaction was rolled back, gets new ones. */
import { type Lane, laneRules, lanes } from '../../../../contract/lanes.ts';
import { Ages, type StoreClock } from '../ages.ts';
import { AnnouncedTable } from './announced-table.ts';
import { ChannelIds, LaneTable } from './lane-table.ts';
import { type Changes, type Depth, perLane } from '../changes.ts';
import { DropTable, TotalsTable } from './drop-table.ts';
import { Epochs } from '../epochs.ts';
import type { InFlightRows } from '../in-flight-rows.ts';
import { JournalTable } from './journal-table.ts';
import type { LaneDepth, StoreLimits } from '../../protocol.ts';
import { Quarantine } from './quarantine.ts';
import { Retention, Thinning } from './retention.ts';
import type { Row, RowId } from '../../row.ts';
import type { Handle } from '../schema.ts';
import { texts } from '../../texts.ts';

type IsHeld = (lane: Lane, id: RowId) => boolean;

export interface Tables {
  readonly db: Handle;
  readonly channels: ChannelIds;
  readonly announced: AnnouncedTable;
  readonly drops: DropTable;
  readonly totals: TotalsTable;
  readonly epochs: Epochs;
  readonly journal: JournalTable;
  readonly quarantine: Quarantine;
  readonly ages: Ages;
  readonly retention: Retention;
  readonly lane: (lane: Lane) => LaneTable;
  /** Puts a row into its lane. False when it was there already or a newer one makes it worthless. */
  readonly insert: (row: Row, changes: Changes, isHeld?: IsHeld) => boolean;
  /** How the next transactions of this handle are committed. Not within one. */
  readonly sync: (mode: 'FULL' | 'NORMAL') => void;
  readonly readDepth: () => Depth;
  readonly writeDepth: (changes: Changes) => void;
  /** Number of the last transaction of this file, 0 in a new one. */
  readonly readNumber: () => number;
  readonly writeNumber: (number: number) => void;
}

export function openTables(
  db: Handle,
  limits: StoreLimits,
  in_flight: InFlightRows,
  clock: StoreClock,
): Tables {
  const channels = new ChannelIds(db);
  const announced = new AnnouncedTable(db);
  const ages = new Ages(db, limits.age_max_ms, clock);
  const table = laneTablesOf(db, channels);
  const readDepth = db.prepare<[Lane], LaneDepth>('SELECT rows, bytes FROM depth WHERE lane = ?');
  const writeDepth = db.prepare<[number, number, Lane]>(
    'UPDATE depth SET rows = ?, bytes = ? WHERE lane = ?',
  );
  // In the page of the depths, which each transaction writes anyway.
  const readNumber = db.prepare<[string], number>('SELECT rows FROM depth WHERE lane = ?').pluck();
  const writeNumber = db.prepare<[string, number]>(
    'INSERT INTO depth (lane, rows, bytes) VALUES (?, ?, 0) ON CONFLICT (lane) DO UPDATE SET rows = excluded.rows',
  );
  const quarantine = new Quarantine(db);
  const totals = new TotalsTable(db, clock);
  return {
    db,
    channels,
    announced,
    ages,
    drops: new DropTable(db, totals),
    totals,
    epochs: new Epochs(db),
    journal: new JournalTable(db, limits.journal_rows_max),
    quarantine,
    retention: new Retention({
      table,
      in_flight,
      ages,
      announced,
      limits,
      quarantine,
      thinning: new Thinning(db, table('feed'), in_flight),
    }),
    lane: table,
    insert: (row, changes, isHeld = (lane, id) => in_flight.isHeld(lane, id)) => {
      const lane = table(row.lane);
      return laneRules[row.lane].retain
        ? announced.insertNewest(row, lane, changes, (id) => isHeld(row.lane, id))
        : lane.insert(row, changes);
    },
    sync: synchroniser(db),
    readDepth: () => perLane((lane) => readDepth.get(lane) ?? { rows: 0, bytes: 0 }),
    readNumber: () => readNumber.get(number_row) ?? 0,
    writeNumber: (number) => void writeNumber.run(number_row, number),
    writeDepth: (changes) => {
      for (const lane of lanes) {
        const { rows, bytes } = changes.lane(lane);
        writeDepth.run(rows, bytes, lane);
      }
    },
  };
}

function laneTablesOf(db: Handle, channels: ChannelIds): Tables['lane'] {
  const tables = new Map(lanes.map((lane) => [lane, new LaneTable(db, lane, channels)]));
  return (lane) => {
    const found = tables.get(lane);
    if (!found) throw new RangeError(texts.lane_unknown(lane));
    return found;
  };
}

/** No lane. */
const number_row = '#transaction';

/** Sets the mode of a handle when it changes. */
function synchroniser(db: Handle): Tables['sync'] {
  let current: string | undefined;
  return (mode) => {
    if (mode === current) return;
    current = undefined;
    db.pragma(`synchronous = ${mode}`);
    current = mode;
  };
}
