/** Which radio belongs to which entry: over restarts, exchanges, moves and false claims. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FakeRadio } from '../../../fakes/fake-radio.ts';
import { eventually } from '../../../support/eventually.ts';
import { type VendorradioLab, vendorradioLab } from '../../../support/drivers/vendorradio-lab.ts';
import { freePort } from '../../../support/ports.ts';

const mast_key = 'radio:020000aabb01';
const boat_mac = '02:00:00:CC:DD:01';
const alarm = /claimed the identity of another one/u;

let lab: VendorradioLab;
const others: FakeRadio[] = [];
beforeEach(async () => {
  lab = await vendorradioLab();
});
afterEach(async () => {
  await lab.stop();
  for (const radio of others.splice(0)) await radio.stop();
});

async function radioWith(mac: string): Promise<FakeRadio> {
  const radio = new FakeRadio({ mac });
  others.push(radio);
  await radio.start();
  return radio;
}

const alarms = (): readonly string[] =>
  lab.logged(alarm).map(({ facts }) => `${String(facts['name'])}: ${String(facts['reason'])}`);
const served = (): readonly string[] =>
  lab.hub.hub
    .assets()
    .filter(({ status }) => status === 'online')
    .map(({ name, key }) => `${name} ${key}`);

describe('the identity of a radio', () => {
  it('stays with its entry: another radio at the address is not served and raises one alarm, also after a restart', async () => {
    lab.start();
    await lab.until('online');
    const other = await radioWith(boat_mac);
    await lab.restart(lab.options({ port: other.port }));
    // The entry has another address now: what answers there is what it is bound to.
    await lab.until('online');
    expect(lab.announced()).toMatchObject({ asset_key: 'radio:020000ccdd01' });
    await other.lose();
    const port = other.port;
    const thief = new FakeRadio({ mac: '02:00:00:EE:EE:01' });
    others.push(thief);
    await thief.listen(port);
    await lab.restart(lab.options({ port }));
    await eventually('the alarm is raised', () => alarms().length > 0);
    expect(alarms()).toEqual([
      'mast: another device answers at this address: radio:020000eeee01 instead of radio:020000ccdd01; if it was replaced, give its entry another name, else check which device answers',
    ]);
    expect(served()).toEqual([]);
    await thief.lose();
    await other.listen(port);
    await lab.until('online');
    expect(served()).toEqual(['mast radio:020000ccdd01']);
    expect(alarms()).toHaveLength(1);
  });

  it('is not taken over by another entry that claims it while the radio is away', async () => {
    const boat = await radioWith(boat_mac);
    const both = {
      radios: [lab.radioOptions(), lab.radioOptions({ name: 'boat', port: boat.port })],
      poll_s: 0.1,
    };
    lab.start(both);
    await eventually('both are served', () => served().length === 2);
    await lab.radio.lose();
    const port = boat.port;
    await boat.lose();
    const claimant = new FakeRadio();
    others.push(claimant);
    await claimant.listen(port);
    await lab.restart(both);
    await eventually('the alarm is raised', () => alarms().length > 0);
    expect(alarms()[0]).toContain(`boat: it is the same device as "mast" (${mast_key}), or claims to be`);
    await eventually('neither is served', () => served().length === 0);
    await lab.radio.start();
    await eventually('its own entry has it back', () => served().length === 1);
    expect(served()).toEqual([`mast ${mast_key}`]);
  });

  it('of a replacement is accepted once its entry has another name', async () => {
    lab.start();
    await lab.until('online');
    const port = lab.radio.port;
    await lab.radio.lose();
    const replacement = new FakeRadio({ mac: boat_mac });
    others.push(replacement);
    await replacement.listen(port);
    await lab.restart(lab.options({ name: 'mast 2' }));
    await lab.until('online', 'mast 2');
    expect(lab.announced('mast 2')).toMatchObject({ asset_key: 'radio:020000ccdd01' });
    expect(alarms()).toEqual([]);
  });

  it('goes with the radio to another address, though a new entry has the old one', async () => {
    lab.start();
    await lab.until('online');
    const old_port = lab.radio.port;
    await lab.radio.lose();
    const port = await freePort();
    await lab.radio.listen(port);
    await lab.restart({
      radios: [lab.radioOptions({ name: 'new', port: old_port }), lab.radioOptions({ port })],
      poll_s: 0.1,
    });
    await lab.until('online');
    expect(served()).toEqual([`mast ${mast_key}`]);
    const newcomer = new FakeRadio({ mac: boat_mac });
    others.push(newcomer);
    await newcomer.listen(old_port);
    await lab.until('online', 'new');
    expect(alarms()).toEqual([]);
  });
});
