/** 60 kills of a broker without persistence under a connector that goes on; prints the account. */
import { expect, it } from 'vitest';
import { killBrokers } from './support/campaigns.ts';

const kills = 60;

it('60 kills of the broker lose no accepted sync message', async () => {
  const account = await killBrokers(kills);
  const { sync, lazy, duplicates } = account;
  console.log(
    `${kills} kills of the broker: sync ${sync.lost} of ${sync.accepted} lost; ` +
      `lazy ${lazy.lost} of ${lazy.accepted} lost; ${duplicates} duplicates`,
  );
  expect(account).toMatchObject({ emptied: true, integrity: 'ok', faults: [], foreign_files: [] });
  expect(sync.lost).toBe(0);
});
