/** 200 power cuts under load, a third of them with each state of the broker; prints the accounts. */
import { expect, it } from 'vitest';
import { cutPower } from '../support/campaigns.ts';
import { numberOf } from '../support/numbers.ts';

const cuts = Math.ceil(numberOf('FAULTS_POWER_CUTS', 200) / 3);
const lazy_window_s = 1.3;
/** The timer, the worker that writes, and the disk: each waits for a processor where others keep it busy. */
const hops = 3;

it.each(['away', 'there', 'silent'] as const)(
  'power cuts while the broker is %s lose no sync message and telemetry of the stated window at most',
  async (where) => {
    const account = await cutPower(cuts, where);
    const { sync, lazy } = account;
    console.log(
      `${cuts} power cuts in ${account.seconds.toFixed(0)} s, broker ${where}: sync ${sync.lost} of ${sync.accepted} lost; ` +
        `lazy ${lazy.lost} of ${lazy.accepted} lost, accepted at most ${account.lazy_window_s.toFixed(2)} s before; ${account.duplicates} duplicates`,
    );
    expect(account).toMatchObject({ emptied: true, integrity: 'ok', faults: [], foreign_files: [] });
    expect(sync.lost).toBe(0);
    expect(account.lazy_window_s).toBeLessThanOrEqual(lazy_window_s + hops * account.starved_s);
  },
);
