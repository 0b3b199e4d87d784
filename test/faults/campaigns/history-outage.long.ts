/**
 * Six hours offline at 5 Hz, then 200 kills of service, database and broker during the drain, half of them on each database, and the same
 * without a kill; prints the accounts.
 */
import { expect, it } from 'vitest';
import { numberOf } from '../support/numbers.ts';
import { playOutage } from '../support/history-outage.ts';

const kills = Math.ceil(numberOf('FAULTS_HISTORY_KILLS', 200) / 2);
/** Slow, so that the kills come before the end. */
const backlog_kbps = numberOf('FAULTS_HISTORY_KBPS', 64);

const databases = ['SQLite', 'PostgreSQL'] as const;
const each_once = { missing: {}, unexplained: 0, doubled: 0, changed: 0, out_of_order: 0 };

it.each(databases)(
  'a drain without kills leaves each message in the history once, on %s',
  async (database) => {
    const account = await playOutage({ database, kills: 0, killsBroker: false, hz: 0.5, backlog_kbps: 0 });
    console.log(`${database}: ${JSON.stringify(account)}`);
    expect(account).toMatchObject(each_once);
    expect(account.dropped).toBeGreaterThan(0);
  },
);

it.each(databases)(
  'kills of service, database and broker during the drain leave each message in the history once, on %s',
  async (database) => {
    const account = await playOutage({ database, kills, killsBroker: true, hz: 5, backlog_kbps });
    console.log(`${database}: ${JSON.stringify(account)}`);
    expect(account).toMatchObject(each_once);
    expect(account.kills).toBe(kills);
  },
);

it('a broker that loses what it acknowledged while the service was away costs no message', async () => {
  const spec = { database: 'SQLite', kills: 0, killsBroker: false, losses: 2 } as const;
  expect(await playOutage({ ...spec, hz: 0.5, backlog_kbps: 48 })).toMatchObject(each_once);
});
