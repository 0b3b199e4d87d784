/** What waits for a database that takes nothing is limited: the sender keeps the rest, and all that was taken is stored. */
import { expect, it } from 'vitest';
import { StorageUnavailable } from '../../../src/errors.ts';
import { Changes } from '../../../src/service/changes.ts';
import { Intake, waiting_max } from '../../../src/service/ingest/intake.ts';
import type { Reception } from '../../../src/service/ingest/read-message.ts';
import { kit_id } from '../../support/contract-samples.ts';
import { eventually } from '../../support/eventually.ts';
import { recordingLog } from '../../support/recording-log.ts';

const reception: Reception = {
  kit_id,
  messages: [],
  cleared: [],
  retained: false,
  historical: false,
  faults: [],
};

it('refuses what is beyond the limit, says once that the database is away, and stores what waited when it is back', async () => {
  const ends = new AbortController();
  const log = recordingLog();
  let isAway = true;
  let stored = 0;
  const commit = async (receptions: readonly Reception[]) => {
    if (isAway) throw new StorageUnavailable('the disk is full');
    stored += receptions.length;
    return { changes: [], acks: [], new_kits: [] };
  };
  const { signal } = ends;
  const parts = { store: { commit }, changes: new Changes(), log, group_ms: 0, onCommitted: () => undefined };
  const intake = new Intake({ ...parts, signal });
  const taken: Promise<void>[] = [];
  for (let n = 0; n < waiting_max; n += 1) taken.push(intake.take(reception));
  await expect(intake.take(reception)).rejects.toBeInstanceOf(StorageUnavailable);
  await eventually('the database was tried', () => intake.unready !== undefined);
  isAway = false;
  await Promise.all(taken);
  expect(stored).toBe(waiting_max);
  expect(log.at('error')).toEqual([
    'the database does not take messages: the broker keeps them until it does',
  ]);
  expect(log.at('info')).toEqual(['the database takes messages again']);
  await intake.take(reception);
  expect(stored).toBe(waiting_max + 1);
  ends.abort();
});
