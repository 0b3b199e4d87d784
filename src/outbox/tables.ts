/** All tables of one open handle, joined. A handle that broke, or whose transaction was rolled back, gets new ones. */
import { laneRules, lanes, type Lane } from '../contract/lanes.ts';
import { Ages, type StoreClock } from './ages.ts';
import { AnnouncedTable } from './announced-table.ts';
import { ChannelIds } from './channel-ids.ts';
import { perLane, type Changes, type Depth } from './changes.ts';
import { DropTable } from './drop-table.ts';
import { Epochs } from './epochs.ts';
import type { Hands } from './hands.ts';
import { JournalTable } from './journal-table.ts';
import { LaneTable } from './lane-table.ts';
import type { LaneDepth, StoreLimits } from './protocol.ts';
import { Quarantine } from './quarantine.ts';
import { Retention } from './retention.ts';
import type { Row } from './row.ts';
import type { Handle } from './schema.ts';
import { Thinning } from './thinning.ts';

export interface Tables {
  readonly db: Handle;
  readonly channels: ChannelIds;
  readonly announced: AnnouncedTable;
  readonly drops: DropTable;
  readonly epochs: Epochs;
  readonly journal: JournalTable;
  readonly quarantine: Quarantine;
  readonly ages: Ages;
  readonly retention: Retention;
  readonly lane: (lane: Lane) => LaneTable;
  /** Puts a row into its lane. False when it was there already or a newer one makes it worthless. */
  readonly insert: (row: Row, changes: Changes) => boolean;
  readonly readDepth: () => Depth;
  readonly writeDepth: (changes: Changes) => void;
}

export function openTables(db: Handle, limits: StoreLimits, hands: Hands, clock: StoreClock): Tables {
  const channels = new ChannelIds(db);
  const announced = new AnnouncedTable(db);
  const ages = new Ages(db, limits.age_max_ms, clock);
  const laneTables = new Map(lanes.map((lane) => [lane, new LaneTable(db, lane, channels)]));
  const table = (lane: Lane): LaneTable => {
    const found = laneTables.get(lane);
    if (!found) throw new RangeError(`no lane ${lane}`);
    return found;
  };
  const readDepth = db.prepare<[Lane], LaneDepth>('SELECT rows, bytes FROM depth WHERE lane = ?');
  const writeDepth = db.prepare<[number, number, Lane]>(
    'UPDATE depth SET rows = ?, bytes = ? WHERE lane = ?',
  );
  return {
    db,
    channels,
    announced,
    ages,
    drops: new DropTable(db),
    epochs: new Epochs(db),
    journal: new JournalTable(db, limits.journal_rows_max),
    quarantine: new Quarantine(db, limits.quarantine_rows_max),
    retention: new Retention({
      table,
      hands,
      ages,
      limits,
      thinning: new Thinning(db, table('feed'), hands),
    }),
    lane: table,
    insert: (row, changes) => {
      const lane = table(row.lane);
      return laneRules[row.lane].retain
        ? announced.insertNewest(row, lane, changes)
        : lane.insert(row, changes);
    },
    readDepth: () => perLane((lane) => readDepth.get(lane) ?? { rows: 0, bytes: 0 }),
    writeDepth: (changes) => {
      for (const lane of lanes) {
        const { rows, bytes } = changes.lane(lane);
        writeDepth.run(rows, bytes, lane);
      }
    },
  };
}
