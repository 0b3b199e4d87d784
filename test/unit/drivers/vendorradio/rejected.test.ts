/** A radio that rejects the login: the others go on, and it is tried again. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { FakeRadio } from '../../../fakes/fake-radio.ts';
import { eventually, letPass } from '../../../support/eventually.ts';
import { vendorradioLab, type VendorradioLab } from '../../../support/drivers/vendorradio-lab.ts';

let lab: VendorradioLab;
afterEach(async () => lab.stop());

describe('a radio that rejects the login', () => {
  it('stops that radio alone, after one attempt', async () => {
    lab = await vendorradioLab();
    const other = new FakeRadio({ mac: '02:00:00:AA:BB:09', user: { name: 'kit', password: 'another' } });
    await other.start();
    try {
      lab.start({
        ...lab.options(),
        radios: [lab.radioOptions(), lab.radioOptions({ name: 'boat', port: other.port })],
      });
      await lab.until('online');
      await eventually('it is said', () => lab.logged(/cannot be served/u).length === 1);
      await letPass(500);
      expect(other.sessions.logins).toBe(1);
      expect(lab.asset('mast')?.status).toBe('online');
      expect(lab.devices()).toMatchObject([
        { name: 'mast', state: 'online', reason: null, next_try_at: null },
        { name: 'boat', tried: `127.0.0.1:${other.port}`, state: 'rejected', asset_key: null },
      ]);
      const boat = lab.devices().find(({ name }) => name === 'boat');
      expect(boat?.reason).toMatch(/password/u);
      expect(Date.parse(boat?.next_try_at ?? '')).toBeGreaterThan(Date.parse(boat?.tried_at ?? ''));
    } finally {
      await other.stop();
    }
  });

  it('shows the refusal, its time and the next attempt as the reason of its asset', async () => {
    lab = await vendorradioLab();
    lab.start();
    await lab.until('online');
    lab.radio.sessions.user = { name: 'kit', password: 'another' };
    lab.radio.sessions.forgetAll();
    await eventually('the asset has the reason', () =>
      /password.*next attempt/u.test(lab.asset('mast')?.reason ?? ''),
    );
    expect(lab.asset('mast')?.status).toBe('offline');
  });

  it('is tried again rarely, so that a corrected password needs no new configuration', async () => {
    lab = await vendorradioLab({ limits: { rejected_first_ms: 600, rejected_max_ms: 600 } });
    const other = new FakeRadio({ mac: '02:00:00:AA:BB:09', user: { name: 'kit', password: 'another' } });
    await other.start();
    try {
      const password_file = join(lab.dir, 'boat');
      await writeFile(password_file, 'wrong', { mode: 0o600 });
      const boat = lab.radioOptions({ name: 'boat', port: other.port, password_file });
      lab.start({ ...lab.options(), radios: [lab.radioOptions(), boat] });
      await eventually('the radio rejects the login', () => lab.logged(/cannot be served/u).length === 1);
      await writeFile(password_file, 'another', { mode: 0o600 });
      await eventually('it is served', () => lab.asset('boat')?.status === 'online');
      expect(lab.logged(/cannot be served/u)).toHaveLength(1);
      expect(lab.logged(/radio is back/u)).toHaveLength(1);
    } finally {
      await other.stop();
    }
  });
});
