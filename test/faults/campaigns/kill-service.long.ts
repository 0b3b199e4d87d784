/** 200 kills of the standalone service with SIGKILL on each database while kits publish; prints the accounts. */
import { expect, it } from 'vitest';
import { numberOf } from '../support/numbers.ts';
import { killServices } from '../support/service-campaign.ts';

const kills = numberOf('FAULTS_SERVICE_KILLS', 200);

it.each(['SQLite', 'PostgreSQL'] as const)(
  'kills of the service on %s lose no message that it acknowledged, none that the broker keeps for it, and lose or double no alarm',
  async (kind) => {
    const account = await killServices(kills, kind);
    const { published, lost, acknowledged, acknowledged_not_stored, named, named_not_stored } = account;
    console.log(
      `${kills} kills of the service on ${kind}, ${account.early} of them while it started, in ${account.seconds.toFixed(0)} s: ` +
        `${lost} of ${published} messages lost; acknowledged ${acknowledged}, minus stored ${acknowledged_not_stored}; ` +
        `named in down/ack ${named}, minus stored ${named_not_stored}; ${account.duplicates} duplicates; ` +
        `alarms ${account.alarms}, lost ${account.alarms_lost}, doubled ${account.alarms_doubled}, neither open nor closed as sent ${account.alarms_wrong}`,
    );
    expect(account).toMatchObject({ integrity: 'ok', stale: [], invented: 0 });
    expect(account).toMatchObject({ alarms_lost: 0, alarms_doubled: 0, alarms_wrong: 0 });
    expect(account.alarms).toBeGreaterThan(kills);
    expect({ lost, acknowledged_not_stored, named_not_stored }).toEqual({
      lost: 0,
      acknowledged_not_stored: 0,
      named_not_stored: 0,
    });
  },
);
