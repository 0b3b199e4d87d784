/** 200 kills of a broker without persistence under a connector that goes on; prints the account. */
import { expect, it } from 'vitest';
import { killBrokers } from '../support/campaigns.ts';
import { numberOf } from '../support/numbers.ts';

const kills = numberOf('FAULTS_BROKER_KILLS', 200);

it(`${kills} kills of the broker lose no accepted sync message`, async () => {
  const account = await killBrokers(kills);
  const { sync, lazy, duplicates, seconds } = account;
  console.log(
    `${kills} kills of the broker in ${seconds.toFixed(0)} s: sync ${sync.lost} of ${sync.accepted} lost; ` +
      `lazy ${lazy.lost} of ${lazy.accepted} lost; ${duplicates} duplicates`,
  );
  expect(account).toMatchObject({ emptied: true, integrity: 'ok', faults: [], foreign_files: [] });
  expect(sync.lost).toBe(0);
});
