/** The short form of the campaign in kill-broker.long.ts. */
import { describe, expect, it } from 'vitest';
import { peerMissing } from '../../support/peers.ts';
import { killBrokers } from '../support/campaigns.ts';

describe.skipIf(peerMissing('mosquitto'))(
  'a broker that keeps nothing and is killed at random moments',
  () => {
    it('costs no sync message that the connector had accepted, since the cloud confirms what it has stored', async () => {
      const account = await killBrokers(5);
      expect(account.sync.accepted).toBeGreaterThan(1_000);
      expect(account).toMatchObject({ emptied: true, integrity: 'ok', faults: [], foreign_files: [] });
      expect(account.sync.lost).toBe(0);
    }, 120_000);
  },
);
