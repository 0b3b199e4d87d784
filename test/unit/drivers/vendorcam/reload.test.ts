/** A reload that changes one of several cameras while the driver runs. */
import { writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { texts } from '../../../../src/toolkit/device/texts.ts';
import { FakeVendorCamera } from '../../../fakes/fake-vendor-camera.ts';
import { vendorcamLab, type VendorcamLab } from '../../../support/cameras/vendorcam-lab.ts';
import { elapse } from '../../../support/elapse.ts';
import { eventually } from '../../../support/eventually.ts';

let lab: VendorcamLab;
let yard: FakeVendorCamera;
beforeEach(async () => {
  lab = await vendorcamLab();
  yard = new FakeVendorCamera({ mac: 'EC:71:DB:00:00:02' });
  yard.camera.name = 'Yard';
  await yard.start();
});
afterEach(async () => {
  await lab.stop();
  await yard.stop();
});

const gate = (more: object = {}) => lab.hostOptions(more);
const second = (more: object = {}) => lab.hostOptions({ name: 'yard', port: yard.port, ...more });
const options = (...hosts: readonly object[]) => lab.options({}, { hosts });
const reload = (next: unknown) => lab.hub.hub.changeOptions('cameras', next);
const statusOf = (name: string) => lab.asset(name)?.status;
const start = async (...hosts: readonly object[]): Promise<void> => {
  lab.start(options(...hosts));
  await eventually('both are online', () => statusOf('Gate') === 'online' && statusOf('Yard') === 'online');
};

describe('a reload', () => {
  it('reconnects the one camera that changed; the other keeps its session and is never offline', async () => {
    await start(gate(), second());
    lab.hub.outbox.clear();
    expect(reload(options(gate(), second({ commands: ['ptz_move'] })))).toEqual([]);
    await eventually('the changed one logs in again', () => yard.sessions.logins === 2);
    await eventually('it is online again', () => statusOf('Yard') === 'online');
    const lost = lab.hub.outbox.drafts.filter(
      ({ channel, data }) => channel.endsWith('/asset_status') && data?.['status'] === 'offline',
    );
    expect(lost.map((draft) => draft.data?.['reason'])).toEqual([texts.device_changed]);
    expect(lab.camera.sessions).toMatchObject({ logins: 1, logouts: 0 });
    expect(yard.sessions.open).toBe(1);
    expect(lab.hub.hub.drivers()[0]).toMatchObject({ state: 'up', runs: 1 });
  });

  it('adds a camera, and removes another with its asset', async () => {
    await start(gate(), second());
    reload(options(gate()));
    await eventually('its asset is removed', () => lab.asset('Yard') === undefined);
    expect(yard.sessions.open).toBe(0);
    expect(lab.hub.hub.drivers()[0]?.facts).not.toHaveProperty('yard');
    expect(lab.hub.hub.drivers()[0]?.devices?.map(({ name }) => name)).toEqual(['gate']);
    reload(options(gate(), second()));
    await eventually('it is online again', () => statusOf('Yard') === 'online');
    expect(lab.camera.sessions).toMatchObject({ logins: 1, logouts: 0 });
  });

  it('keeps the asset of a camera whose entry gets another name', async () => {
    await start(gate(), second());
    const before = lab.asset('Yard')?.id;
    reload(options(gate(), second({ name: 'back yard' })));
    await eventually('it is served under the new name', () => {
      const facts = lab.hub.hub.drivers()[0]?.facts ?? {};
      return String(facts['back yard'] ?? '').startsWith('online');
    });
    expect(lab.asset('Yard')).toMatchObject({ id: before, status: 'online' });
  });

  it('tries a camera that rejected the login again, and only that one', async () => {
    const password_file = `${lab.password_file}-yard`;
    await writeFile(password_file, 'wrong', { mode: 0o600 });
    const both = options(gate(), second({ password_file }));
    lab.start(both);
    await eventually('one is online', () => statusOf('Gate') === 'online');
    const device = () => lab.hub.hub.drivers()[0]?.devices?.find(({ name }) => name === 'yard');
    await eventually('one is rejected', () => device()?.state === 'rejected');
    await writeFile(password_file, lab.camera.sessions.password, { mode: 0o600 });
    expect(reload(both)).toEqual(['yard']);
    await eventually('it is online', () => statusOf('Yard') === 'online');
    expect(reload(both)).toEqual([]);
    expect(lab.camera.sessions).toMatchObject({ logins: 1, logouts: 0 });
  });

  it('does not try the same refused password again within ten minutes, however often it comes', async () => {
    yard.sessions.password = 'another';
    const both = options(gate(), second());
    lab.start(both);
    const device = () => lab.hub.hub.drivers()[0]?.devices?.find(({ name }) => name === 'yard');
    for (let turn = 0; turn < 5; turn += 1) {
      await eventually('it is rejected', () => device()?.state === 'rejected');
      reload(both);
      await elapse(20);
    }
    expect(yard.sessions.logins).toBe(1);
  });
});
