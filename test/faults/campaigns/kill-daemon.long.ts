/** 1,000 kills of the connector with SIGKILL while it produces and drains at full speed; prints the account. */
import { expect, it } from 'vitest';
import { killDaemons } from '../support/campaigns.ts';
import { numberOf } from '../support/numbers.ts';

const kills = numberOf('FAULTS_DAEMON_KILLS', 1_000);

it(`${kills} kills of the connector lose no accepted sync message and damage no file`, async () => {
  const account = await killDaemons(kills);
  const { sync, lazy, duplicates, lazy_window_s, starts, seconds } = account;
  console.log(
    `${kills} kills of the daemon in ${seconds.toFixed(0)} s, ${starts} of them after it had opened its buffer: ` +
      `sync ${sync.lost} of ${sync.accepted} lost; lazy ${lazy.lost} of ${lazy.accepted} lost, ` +
      `accepted at most ${lazy_window_s.toFixed(2)} s before; ${duplicates} duplicates, ${(duplicates / kills).toFixed(1)} a kill`,
  );
  // The others were killed before they had opened the buffer, which is a moment like any other.
  expect(starts).toBeGreaterThan(kills * 0.6);
  expect(account).toMatchObject({ emptied: true, integrity: 'ok', faults: [], foreign_files: [] });
  expect(sync.lost).toBe(0);
  expect(lazy_window_s).toBeLessThanOrEqual(1.3);
  expect(duplicates).toBeLessThanOrEqual(account.duplicates_max);
});
