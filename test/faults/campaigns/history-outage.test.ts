/**
 * Six hours offline, then the drain: the history has each message once. The long form, history-outage.long.ts, plays all of it on both
 * databases, with 200 kills.
 */
import { describe, expect, it } from 'vitest';
import { peerMissing } from '../../support/peers.ts';
import { type OutageSpec, playOutage } from '../support/history-outage.ts';

const test_ms = 300_000;
const killed: OutageSpec['database'] = peerMissing('postgres', 'initdb', 'setpriv') ? 'SQLite' : 'PostgreSQL';

/** An event a minute. */
const events = 360;
const each_once = { missing: {}, unexplained: 0, doubled: 0, changed: 0, out_of_order: 0, events };

describe.skipIf(peerMissing('mosquitto'))('the history after six hours offline', () => {
  it(
    'holds every accepted message that no drop report names, once and in order',
    async () => {
      const account = await playOutage({
        database: 'SQLite',
        kills: 0,
        killsBroker: false,
        hz: 0.5,
        backlog_kbps: 0,
      });
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

  it(
    'holds the same after kills of service and database during the drain',
    async () => {
      const account = await playOutage({
        database: killed,
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
