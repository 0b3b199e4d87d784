/** The short form of the campaign in kill-daemon.long.ts. */
import { describe, expect, it } from 'vitest';
import { peerMissing } from '../../support/peers.ts';
import { killDaemons } from '../support/campaigns.ts';

const kills = 8;
/** The timer, the worker that writes, and the disk: each waits for a processor where others keep it busy. */
const hops = 3;

describe.skipIf(peerMissing('mosquitto'))('a connector that is killed at random moments', () => {
  it('loses no accepted sync message, damages no file and repeats only what was under way', async () => {
    const account = await killDaemons(kills);
    expect(account.sync.accepted).toBeGreaterThan(200);
    expect(account).toMatchObject({ emptied: true, integrity: 'ok', faults: [], foreign_files: [] });
    expect(account.sync.lost).toBe(0);
    expect(account.lazy_window_s).toBeLessThanOrEqual(1.3 + hops * account.starved_s);
    expect(account.duplicates).toBeLessThanOrEqual(account.duplicates_max);
  }, 90_000);
});
