/** The short form of the campaign in kill-service.long.ts. */
import { describe, expect, it } from 'vitest';
import { peerMissing } from '../../support/peers.ts';
import { killServices, type ServiceDatabase } from '../support/service-campaign.ts';

const kills = 5;

const nothing_lost = {
  lost: 0,
  acknowledged_not_stored: 0,
  named_not_stored: 0,
  invented: 0,
  stale: [],
  integrity: 'ok',
};

async function accountOf(kind: ServiceDatabase) {
  const account = await killServices(kills, kind);
  if (account.acknowledged < 200 || account.named === 0)
    throw new Error(`too little: ${JSON.stringify(account)}`);
  return account;
}

describe.skipIf(peerMissing('mosquitto'))('a service that is killed at random moments', () => {
  it('has everything that it acknowledged in its SQLite file, and gets the rest from the broker', async () => {
    expect(await accountOf('SQLite')).toMatchObject(nothing_lost);
  }, 300_000);

  it.skipIf(peerMissing('postgres', 'initdb', 'setpriv'))(
    'has everything that it acknowledged in PostgreSQL, and gets the rest from the broker',
    async () => {
      expect(await accountOf('PostgreSQL')).toMatchObject(nothing_lost);
    },
    300_000,
  );
});
