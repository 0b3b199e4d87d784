/** A commit is all or nothing, also while the kits in it are stored side by side. */
import { expect, it } from 'vitest';
import { channels } from '../../../../src/contract/topics.ts';
import { StorageUnavailable } from '../../../../src/platform/errors.ts';
import type { Database } from '../../../../src/cloud/sql/database.ts';
import { openSqlite } from '../../../../src/cloud/sql/sqlite.ts';
import { sqlStore } from '../../../../src/cloud/store/sql-store.ts';
import { kit_id, task_id } from '../../../support/contract-samples.ts';
import { received, start_ms } from '../story.ts';

it('keeps nothing when the database refuses one kit, also not what is stored of others at the same time', async () => {
  const database = openSqlite(':memory:');
  let isFull = true;
  const failing: Database = {
    ...database,
    transactionAhead: async (work) =>
      database.transactionAhead(async (queries) =>
        work({
          all: async (sql, ...values) => {
            if (isFull && sql.startsWith('INSERT INTO kit_parts') && values.includes(kit_id)) {
              throw new StorageUnavailable('the disk is full');
            }
            return queries.all(sql, ...values);
          },
        }),
      ),
  };
  const store = sqlStore(failing);
  const battery = (seq: number) => received({ channel: channels.telemetry, seq, data: { battery: seq } });
  const beside = [1, 2, 3, 4, 5].map((seq) => ({ ...battery(seq), kit_id: task_id }));
  const receptions = [battery(1), ...beside];
  await expect(store.commit(receptions, start_ms)).rejects.toBeInstanceOf(StorageUnavailable);
  expect(await store.kits('*')).toEqual([]);
  expect(await database.all('SELECT * FROM kit_parts')).toEqual([]);

  isFull = false;
  await store.commit(receptions, start_ms);
  expect((await store.kit(kit_id))?.counts).toMatchObject({ received: 1, duplicates: 0 });
  expect((await store.kit(task_id))?.counts).toMatchObject({ received: 5, duplicates: 0 });
  await store.close();
});
