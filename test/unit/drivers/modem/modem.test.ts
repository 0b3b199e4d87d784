/** The modem driver against a real dbus-daemon, with ModemManager played by a fake. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { modem } from '../../../../drivers/modem/modem.ts';
import { texts as modem_texts } from '../../../../drivers/modem/texts.ts';
import { texts } from '../../../../src/toolkit/device/texts.ts';
import { type FakeModemManager, startFakeModemManager } from '../../../fakes/services/fake-modem-manager.ts';
import { driverConformance } from '../../../support/drivers/driver-conformance.ts';
import { eventually } from '../../../support/eventually.ts';
import { makeMessageBus, type MessageBusDaemon } from '../../../support/drivers/message-bus.ts';
import { peerMissing } from '../../../support/peers.ts';
import { modemLab } from './modem-lab.ts';

const mm = 'org.freedesktop.ModemManager1';
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

function startLab(address: string, options: object = {}) {
  const lab = modemLab(address, options);
  closing.push(lab.stop);
  return lab;
}

describe.skipIf(peerMissing('dbus-daemon'))('modems on a message bus', () => {
  let bus: MessageBusDaemon;
  beforeAll(async () => {
    bus = await makeMessageBus();
    await bus.start();
  });
  afterAll(async () => bus.stop());

  async function startManager(): Promise<FakeModemManager> {
    const manager = await startFakeModemManager(bus.address);
    closing.push(async () => manager.stop());
    return manager;
  }

  describe('the modem driver', () => {
    let manager: FakeModemManager | undefined;
    const start = async (): Promise<void> => {
      manager ??= await startFakeModemManager(bus.address);
      manager.add({ index: 0 });
    };
    const stop = async (): Promise<void> => {
      manager?.stop();
      manager = undefined;
    };
    driverConformance({
      driver: modem,
      options: () => ({ bus: bus.address }),
      peer: { start, lose: stop, restore: start, stop },
      without: {
        loss: 'a modem is no asset; how it is lost and found is tested below',
        commands: 'the modem takes none',
      },
    });
  });

  describe('a modem that works', () => {
    it('names its link, its operator and what serves it', async () => {
      const manager = await startManager();
      manager.add({ index: 0 });
      const { isp, link, fact } = startLab(bus.address);
      await isp('TestTel');
      expect(link()).toEqual({ name: 'wwan0', type: 'cellular', isp: 'TestTel', reason: null, cause: null });
      expect(link('wwan1')?.type).toBeUndefined();
      expect(fact('wwan0')).toBe('connected, 4G, 70 %, TestTel, RM520N-GL, IMEI ...4321');
    });

    it('reports each change as it is signalled', async () => {
      const manager = await startManager();
      manager.add({ index: 0 });
      const { isp, reason, view } = startLab(bus.address);
      await isp('TestTel');
      manager.set('Modem/0', `${mm}.Modem.Modem3gpp`, {
        OperatorName: ['s', 'Orange F'],
        RegistrationState: ['u', 5],
      });
      await isp('Orange F (roaming)');
      manager.set('Bearer/0', `${mm}.Bearer`, {
        Connected: ['b', false],
        Interface: ['s', ''],
        ConnectionError: ['(ss)', [`${mm}.Error.MobileEquipment.Unknown`, 'Unknown or missing APN']],
      });
      manager.set('Modem/0', `${mm}.Modem`, { State: ['i', 8] });
      await reason('modem: registered, not connected: Unknown or missing APN');
      manager.set('Modem/0', `${mm}.Modem`, { State: ['i', -1], StateFailedReason: ['u', 2] });
      await reason('modem: no SIM card');
      expect(view()?.state).toBe('up');
    });

    it('is read periodically even if a signal was lost', async () => {
      const manager = await startManager();
      manager.add({ index: 0 });
      const { isp, reason, view } = startLab(bus.address, { interval_s: 1 });
      await isp('TestTel');
      manager.set('Modem/0', `${mm}.Modem`, { State: ['i', 3] }, 'silently');
      await reason('modem: switched off');
      expect(view()?.state).toBe('up');
    });

    it('answers a storm of signals with few readings', async () => {
      const manager = await startManager();
      manager.add({ index: 0 });
      const { isp } = startLab(bus.address);
      await isp('TestTel');
      const before = manager.calls.get('GetManagedObjects') ?? 0;
      for (let quality = 0; quality < 100; quality += 1) {
        manager.set('Modem/0', `${mm}.Modem`, { SignalQuality: ['(ub)', [quality, true]] });
      }
      manager.set('Modem/0', `${mm}.Modem.Modem3gpp`, { OperatorName: ['s', 'Last'] });
      await isp('Last');
      expect((manager.calls.get('GetManagedObjects') ?? 0) - before).toBeLessThan(10);
    });
  });

  describe('modems that come and go', () => {
    it('are identified by their ports, also when reconnected in another order', async () => {
      const manager = await startManager();
      manager.add({ index: 0, port: 'wwan0', imei: '860000000000001' });
      manager.add({ index: 1, port: 'wwan1', imei: '860000000000002' });
      const { isp, fact, reason } = startLab(bus.address);
      await isp('TestTel', 'wwan1');
      manager.remove(0);
      await reason(modem_texts.unplugged);
      manager.remove(1);
      manager.add({ index: 2, port: 'wwan1', imei: '860000000000001' });
      manager.add({ index: 3, port: 'wwan0', imei: '860000000000002' });
      await isp('TestTel', 'wwan0');
      await eventually(
        'both are told apart',
        () => String(fact('wwan1')).endsWith('0001') && String(fact('wwan0')).endsWith('0002'),
      );
      await reason(null, 'wwan1');
    });

    // https://github.com/siemens/meta-iot2050/issues/460, https://github.com/NixOS/nixpkgs/issues/22533
    it('say where their link is when their interface comes back under another name', async () => {
      const manager = await startManager();
      manager.add({ index: 0, port: 'wwan0', imei: '860000000000001' });
      const { isp, reason, link } = startLab(bus.address);
      await isp('TestTel', 'wwan0');
      manager.remove(0);
      await reason(modem_texts.unplugged, 'wwan0');
      manager.add({ index: 1, port: 'wwan1', imei: '860000000000001' });
      await isp('TestTel', 'wwan1');
      await eventually('named', () => link('wwan0')?.reason === modem_texts.renamed('wwan1'));
      // https://github.com/openwrt/packages/issues/23550
      manager.set('Bearer/1', `${mm}.Bearer`, { Interface: ['s', 'ppp0'], Multiplexed: ['b', true] });
      await isp('TestTel', 'ppp0');
      await eventually('multiplexed', () => link('wwan1')?.reason === modem_texts.multiplexed('ppp0'));
    });

    it('are awaited when there is none', async () => {
      const manager = await startManager();
      const { view, isp, fact } = startLab(bus.address);
      await eventually('ModemManager has answered', () => view()?.state === 'up');
      await eventually('its modems are counted', () => fact('modems') === 0);
      manager.add({ index: 0 });
      await isp('TestTel');
    });

    it('need a configured interface when they dial', async () => {
      const manager = await startManager();
      manager.add({ index: 0, port: 'ttyUSB2' });
      const { isp, view } = startLab(bus.address, { interfaces: { ttyUSB2: 'ppp0' } });
      await isp('TestTel', 'ppp0');
      expect(view()?.state).toBe('up');
    });
  });

  describe('ModemManager', () => {
    it('is reported while it does not run, and used when it does', async () => {
      const { down, isp, view } = startLab(bus.address);
      await down(/^ModemManager is not running; install or start it/u);
      const manager = await startManager();
      manager.add({ index: 0 });
      await isp('TestTel');
      expect(view()?.state).toBe('up');
    });

    it('restores the link after a restart, and each change is logged once', async () => {
      const manager = await startFakeModemManager(bus.address);
      manager.add({ index: 0 });
      const { isp, down, link, log } = startLab(bus.address);
      await isp('TestTel');
      manager.stop();
      await down(/ModemManager has exited/u);
      expect(link()?.reason).toContain(modem_texts.manager_ended);
      const next = await startManager();
      next.add({ index: 0 });
      await eventually('the link without a reason', () => link()?.reason === null);
      expect(log.at('warn').filter((line) => line === texts.is_unavailable('device'))).toHaveLength(1);
      expect(log.at('info').filter((line) => line === texts.is_back('device'))).toHaveLength(1);
    });

    it.each([
      ['list of nonsense', /a list that cannot be read/u],
      ['refusing', /does not list its modems: refused by the fake/u],
    ] as const)('is named when it gives: %s', async (mood, why) => {
      const manager = await startManager();
      manager.mood = mood;
      manager.add({ index: 0 });
      const { down, isp, view } = startLab(bus.address);
      await down(why);
      manager.mood = 'well';
      await isp('TestTel');
      expect(view()?.state).toBe('up');
    });

    it('is lost while it is silent, and restored when it answers again', async () => {
      const manager = await startManager();
      manager.mood = 'silent';
      manager.add({ index: 0 });
      const { down, isp, link } = startLab(bus.address, { timeout_s: 0.3 });
      await down(/^org\.freedesktop\.ModemManager1 did not answer GetManagedObjects in time/u);
      manager.mood = 'well';
      await isp('TestTel');
      expect(link()?.reason).toBeNull();
    });

    it('does not delay a stopping daemon while it is silent', async () => {
      const manager = await startManager();
      manager.mood = 'silent';
      const { stop, view } = startLab(bus.address);
      await eventually('asked', () => manager.calls.has('GetManagedObjects'));
      await stop();
      expect(view()?.state).toBe('stopped');
    });

    it('may send properties of wrong types: they are unknown, the others are used', async () => {
      const manager = await startManager();
      manager.add({ index: 0 });
      const { isp, link, fact } = startLab(bus.address);
      await isp('TestTel');
      manager.set('Modem/0', `${mm}.Modem`, {
        State: ['s', 'eleven'],
        SignalQuality: ['(ub)', [4_000_000_000, true]],
        Ports: ['as', ['wwan0']],
        EquipmentIdentifier: ['x', 1n],
      });
      manager.set('Modem/0', `${mm}.Modem.Modem3gpp`, { OperatorName: ['s', `\u0007${'Z'.repeat(1_000)}`] });
      await isp('Z'.repeat(64));
      expect(link()?.reason).toBe('modem: state not known yet');
      expect(fact('wwan0')).toBe(`state not known yet, 4G, ${'Z'.repeat(64)}, RM520N-GL`);
    });
  });

  describe('the position', () => {
    const gps = (utc: string, latitude: number) =>
      [
        [
          2,
          'a{sv}',
          [
            ['utc-time', ['s', utc]],
            ['latitude', ['d', latitude]],
            ['longitude', ['d', 18.0686]],
            ['altitude', ['d', 45]],
          ],
        ],
      ] as const;
    const cell = [[1, 's', '240,01,FFFE,01A2B305,005A']] as const;

    it('is that of the receiver, once for each fix, without its height', async () => {
      const manager = await startManager();
      manager.add({ index: 0 });
      manager.set('Modem/0', `${mm}.Modem.Location`, { Enabled: ['u', 3] });
      manager.location = [...cell, ...gps('120000.00', 59.3)];
      const { fixes } = startLab(bus.address, { location: true, location_interval_s: 1 });
      await eventually('a fix', () => fixes.length >= 2);
      expect(fixes[0]).toBeNull();
      expect(fixes[1]).toMatchObject({
        latitude: 59.3,
        longitude: 18.0686,
        altitude: null,
        source: 'cellular',
      });
      manager.location = gps('120001.00', 59.4);
      await eventually('the next fix', () => fixes.length >= 3);
      expect(fixes[2]).toMatchObject({ latitude: 59.4, age_ms: 0 });
      const asked = manager.calls.get('GetLocation') ?? 0;
      await eventually('asked again', () => (manager.calls.get('GetLocation') ?? 0) > asked + 1);
      expect(fixes).toHaveLength(3);
    });

    it('is never derived from a cell', async () => {
      const manager = await startManager();
      manager.add({ index: 0 });
      manager.set('Modem/0', `${mm}.Modem.Location`, { Enabled: ['u', 3] });
      manager.location = cell;
      const { fixes } = startLab(bus.address, { location: true, location_interval_s: 1 });
      await eventually('asked', () => (manager.calls.get('GetLocation') ?? 0) >= 2);
      expect(fixes).toEqual([null]);
    });

    it('is not requested unless it is configured', async () => {
      const manager = await startManager();
      manager.add({ index: 0 });
      manager.set('Modem/0', `${mm}.Modem.Location`, { Enabled: ['u', 3] });
      const { isp } = startLab(bus.address, { interval_s: 1 });
      await isp('TestTel');
      await eventually('read again', () => (manager.calls.get('GetManagedObjects') ?? 0) >= 2);
      expect(manager.calls.has('GetLocation')).toBe(false);
    });

    it('is reported missing once with the remedy while the receiver is off or refused, and nothing is switched on', async () => {
      const manager = await startManager();
      manager.add({ index: 0 });
      const { log } = startLab(bus.address, { location: true, location_interval_s: 1 });
      const told = () => log.lines.filter(({ sentence }) => /cannot read a position/u.test(sentence));
      await eventually('it is told', () => told().length === 1);
      expect(JSON.stringify(told()[0]?.facts)).toMatch(/location-enable-gps-raw/u);
      await eventually('looked again', () => (manager.calls.get('GetManagedObjects') ?? 0) >= 2);
      expect(told()).toHaveLength(1);
      expect(manager.calls.has('Setup')).toBe(false);
      manager.location = undefined;
      manager.set('Modem/0', `${mm}.Modem.Location`, { Enabled: ['u', 2] });
      await eventually('the refusal is told', () => told().length === 2);
    });
  });
});

describe('its settings', () => {
  it('reject an address by which a program would be run', () => {
    expect(() => modem.configure({ bus: 'unixexec:path=/bin/true' })).toThrow(/unix:path/u);
    expect(() => modem.configure({ bus: 'tcp:host=example.org,port=1' })).toThrow(/unix:path/u);
  });
});
