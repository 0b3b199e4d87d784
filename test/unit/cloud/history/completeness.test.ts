/** What is missing of a kit's messages, where it is too much to list. */
import { expect, it } from 'vitest';
import { holes_max } from '../../../../src/cloud/history/holes.ts';
import { readCompleteness } from '../../../../src/cloud/history/reading/operations.ts';
import { sqlStore } from '../../../../src/cloud/store/sql-store.ts';
import { openSqlite } from '../../../../src/cloud/sql/sqlite.ts';
import { kit_id } from '../../../support/contract-samples.ts';

it.each([
  [holes_max, false],
  [holes_max + 1, true],
])(
  'tells of %i reports of drops whether there are more than are listed: %s',
  async (reports, hasMoreDrops) => {
    const database = openSqlite(':memory:');
    const store = sqlStore(database);
    try {
      await database.all(
        `INSERT INTO history_holes (kit_id, epoch, lo, hi, lane, reason, messages, reported_ms)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
         SELECT ?, 1, n, n, 'feed', 'expired', 1, 0 FROM numbers`,
        reports,
        kit_id,
      );
      expect(await readCompleteness(store, kit_id)).toEqual({ epochs: [], hasMoreDrops });
    } finally {
      await store.close();
    }
  },
);
