/** Six hours offline at 5 Hz, then 200 kills of service, database and broker during the drain, half of them on each database; prints the accounts. */
import { expect, it } from 'vitest';
import { numberOf } from '../support/numbers.ts';
import { playOutage } from '../support/history-outage.ts';

const kills = Math.ceil(numberOf('FAULTS_HISTORY_KILLS', 200) / 2);
/** Slow, so that the kills come before the end. */
const backlog_kbps = numberOf('FAULTS_HISTORY_KBPS', 64);

it.each(['SQLite', 'PostgreSQL'] as const)(
  'kills of service, database and broker during the drain leave each message in the history once, on %s',
  async (database) => {
    const account = await playOutage({ database, kills, killsBroker: true, hz: 5, backlog_kbps });
    console.log(`${database}: ${JSON.stringify(account)}`);
    expect(account).toMatchObject({ missing: {}, unexplained: 0, doubled: 0, changed: 0, out_of_order: 0 });
    expect(account.kills).toBe(kills);
  },
);
