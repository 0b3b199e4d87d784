/** The short form of the campaign in power-cut.long.ts. */
import { describe, expect, it } from 'vitest';
import { diskMissing } from '../../support/disk/disks.ts';
import { peerMissing } from '../../support/peers.ts';
import { cutPower } from '../support/campaigns.ts';

/** 1.25 s is the promise; the rest is the time from the cut to our noting it. */
const lazy_window_s = 1.3;
/** The timer, the worker that writes, and the disk: each waits for a processor where others keep it busy. */
const hops = 3;

describe.skipIf(peerMissing('mosquitto') || diskMissing())('a power cut', () => {
  it.each(['away', 'there', 'silent'] as const)(
    'while the broker is %s loses no sync message, and telemetry of the stated window at most',
    async (where) => {
      const account = await cutPower(3, where);
      expect(account.sync.accepted).toBeGreaterThan(0);
      expect(account.lazy.accepted).toBeGreaterThan(0);
      expect(account).toMatchObject({ emptied: true, integrity: 'ok', faults: [], foreign_files: [] });
      expect(account.sync.lost).toBe(0);
      expect(account.lazy_window_s).toBeLessThanOrEqual(lazy_window_s + hops * account.starved_s);
    },
    90_000,
  );
});
