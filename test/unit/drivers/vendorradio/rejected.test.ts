/** A radio that rejects the login: the others go on, and it is tried again. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { FakeRadio } from '../../../fakes/fake-radio.ts';
import { elapse } from '../../../support/elapse.ts';
import { eventually } from '../../../support/eventually.ts';
import {
  servedRadio,
  vendorradioLab,
  type VendorradioLab,
} from '../../../support/drivers/vendorradio-lab.ts';

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
      await elapse(500);
      expect(other.sessions.logins).toBe(1);
      expect(lab.asset('mast')?.status).toBe('online');
      // In the order of their first reports.
      expect(lab.devices().toSorted((a, b) => a.name.localeCompare(b.name))).toMatchObject([
        { name: 'boat', tried: `127.0.0.1:${other.port}`, state: 'rejected', asset_key: null },
        { name: 'mast', state: 'online', reason: null, next_try_at: null },
      ]);
      const boat = lab.devices().find(({ name }) => name === 'boat');
      expect(boat?.reason).toMatch(/password/u);
      expect(Date.parse(boat?.next_try_at ?? '')).toBeGreaterThan(Date.parse(boat?.tried_at ?? ''));
    } finally {
      await other.stop();
    }
  });

  it('shows the refusal, its time and the next attempt as the reason of its asset', async () => {
    lab = await servedRadio();
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

  it('is not tried again with the same password by a daemon that restarts in a loop', async () => {
    lab = await vendorradioLab();
    lab.radio.sessions.user = { name: 'kit', password: 'another' };
    lab.start();
    await eventually('the radio rejects the login', () => lab.logged(/cannot be served/u).length > 0);
    for (let turn = 0; turn < 3; turn += 1) {
      await lab.restart();
      await eventually('the refusal is shown', () => /password/u.test(lab.devices()[0]?.reason ?? ''));
    }
    expect(lab.radio.sessions.logins).toBe(1);
    await writeFile(lab.password_file, 'another', { mode: 0o600 });
    await lab.restart();
    await lab.until('online');
    expect(lab.radio.sessions.logins).toBe(2);
  });

  it('is back soon where it accepted this password before, as while it boots', async () => {
    lab = await vendorradioLab({ limits: { may_pass_ms: [400, 800] } });
    const other = new FakeRadio({ mac: '02:00:00:AA:BB:09' });
    await other.start();
    try {
      const boat = lab.radioOptions({ name: 'boat', port: other.port });
      lab.start({ ...lab.options(), radios: [lab.radioOptions(), boat] });
      await eventually('it is served', () => lab.asset('boat')?.status === 'online');
      const { user } = other.sessions;
      other.sessions.user = { name: 'kit', password: 'not there yet' };
      other.sessions.forgetAll();
      await eventually('it is rejected', () => lab.asset('boat')?.status === 'offline');
      other.sessions.user = user;
      await eventually('it is served again', () => lab.asset('boat')?.status === 'online');
      expect(other.sessions.logins).toBeLessThanOrEqual(4);
    } finally {
      await other.stop();
    }
  });

  it('is tried again by a reload once its password file was corrected; the others keep their session', async () => {
    lab = await vendorradioLab();
    const other = new FakeRadio({ mac: '02:00:00:AA:BB:09', user: { name: 'kit', password: 'another' } });
    await other.start();
    try {
      const password_file = join(lab.dir, 'boat');
      await writeFile(password_file, 'wrong', { mode: 0o600 });
      const boat = lab.radioOptions({ name: 'boat', port: other.port, password_file });
      const options = { ...lab.options(), radios: [lab.radioOptions(), boat] };
      lab.start(options);
      await lab.until('online');
      await eventually('the radio rejects the login', () => lab.logged(/cannot be served/u).length === 1);
      await writeFile(password_file, 'another', { mode: 0o600 });
      expect(lab.hub.hub.changeOptions('radios', options)).toEqual(['boat']);
      await eventually('it is served', () => lab.asset('boat')?.status === 'online');
      expect(lab.radio.sessions.logins).toBe(1);
      expect(lab.hub.hub.changeOptions('radios', { ...options, radios: [lab.radioOptions()] })).toEqual([]);
      await eventually('its asset is removed', () => lab.asset('boat') === undefined);
      expect(lab.asset('mast')?.status).toBe('online');
    } finally {
      await other.stop();
    }
  });
});
