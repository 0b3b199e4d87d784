/** Six hours offline, then the drain: the history has each message once; the long form with 200 kills is history-outage.long.ts. */
import { describe, expect, it } from 'vitest';
import { peerMissing } from '../../support/peers.ts';
import { type OutageSpec, playOutage } from '../support/history-outage.ts';

const test_ms = 300_000;
const databases: readonly OutageSpec['database'][] = peerMissing('postgres', 'initdb', 'setpriv')
  ? ['SQLite']
  : ['SQLite', 'PostgreSQL'];

/** An event a minute. */
const events = 360;
const each_once = { missing: {}, unexplained: 0, doubled: 0, changed: 0, out_of_order: 0, events };

describe.skipIf(peerMissing('mosquitto'))('the history after six hours offline', () => {
  it.each(databases)(
    'holds every accepted message that no drop report names, once and in order, on %s',
    async (database) => {
      const account = await playOutage({ database, kills: 0, killsBroker: false, hz: 0.5, backlog_kbps: 0 });
      expect(account).toMatchObject(each_once);
      expect(account.dropped).toBeGreaterThan(0);
      expect(account.answered).toBeGreaterThanOrEqual(account.accepted - account.dropped);
    },
    test_ms,
  );

  it(
    'holds the same when the broker loses what it acknowledged while the service was away',
    async () => {
      const account = await playOutage({
        database: 'SQLite',
        kills: 0,
        killsBroker: false,
        losses: 2,
        hz: 0.5,
        backlog_kbps: 48,
      });
      expect(account).toMatchObject(each_once);
    },
    test_ms,
  );

  it.each(databases)(
    'holds the same after kills of service and database during the drain, on %s',
    async (database) => {
      const account = await playOutage({
        database,
        kills: 3,
        killsBroker: false,
        hz: 0.5,
        backlog_kbps: 192,
      });
      expect(account).toMatchObject(each_once);
      expect(account.kills).toBeGreaterThan(0);
    },
    test_ms,
  );
});
