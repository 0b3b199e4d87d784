/** 200 kills of the connector with SIGKILL while it produces and drains at full speed; prints the account. */
import { expect, it } from 'vitest';
import { killDaemons } from './support/campaigns.ts';

const kills = 200;

it('200 kills of the connector lose no accepted sync message and damage no file', async () => {
  const account = await killDaemons(kills);
  const { sync, lazy, duplicates, lazy_window_s } = account;
  console.log(
    `${kills} kills: sync ${sync.lost} of ${sync.accepted} lost; lazy ${lazy.lost} of ${lazy.accepted} lost, ` +
      `accepted at most ${lazy_window_s.toFixed(2)} s before; ${duplicates} duplicates, ${(duplicates / kills).toFixed(1)} a kill`,
  );
  // The others were killed before they had opened the buffer, which is a moment like any other.
  expect(account.starts).toBeGreaterThan(kills * 0.6);
  expect(account).toMatchObject({ emptied: true, integrity: 'ok', faults: [], foreign_files: [] });
  expect(sync.lost).toBe(0);
  expect(lazy_window_s).toBeLessThanOrEqual(1.3);
  expect(duplicates).toBeLessThanOrEqual(account.duplicates_max);
});
