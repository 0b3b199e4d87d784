/** Signal, band, operator and SIM as data of the gateway, against a real dbus-daemon. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { servingCell, strengthOf } from '../../../../drivers/modem/cellular.ts';
import { texts } from '../../../../drivers/modem/texts.ts';
import { gatewayFeeds } from '../../../../src/contract/feeds.ts';
import { type FakeModemManager, startFakeModemManager } from '../../../fakes/services/fake-modem-manager.ts';
import { eventually } from '../../../support/eventually.ts';
import { makeMessageBus, type MessageBusDaemon } from '../../../support/drivers/message-bus.ts';
import { peerMissing } from '../../../support/peers.ts';
import { modemLab } from './modem-lab.ts';

const mm = 'org.freedesktop.ModemManager1';
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

describe.skipIf(peerMissing('dbus-daemon'))('The feed of the modems', () => {
  let bus: MessageBusDaemon;
  beforeAll(async () => {
    bus = await makeMessageBus();
    await bus.start();
  });
  afterAll(async () => bus.stop());

  async function start(options: object, prepare: (manager: FakeModemManager) => void = () => undefined) {
    const manager = await startFakeModemManager(bus.address);
    closing.push(async () => manager.stop());
    prepare(manager);
    manager.add({ index: 0 });
    const lab = modemLab(bus.address, options);
    closing.push(lab.stop);
    const next = async (fits: (modem: Readonly<Record<string, unknown>>) => boolean) => {
      const draft = await lab.outbox.until(({ channel, data }) => {
        if (!channel.startsWith('feed/') || !channel.endsWith('/cellular')) return false;
        const [modem] = gatewayFeeds.cellular.parse(data).modems;
        return modem !== undefined && fits(modem);
      });
      return gatewayFeeds.cellular.parse(draft.data).modems[0];
    };
    return { lab, manager, next };
  }

  it('stands on the gateway, with the last four digits of SIM and IMEI and no figure that was not read', async () => {
    const { next, manager } = await start({});
    expect(await next(() => true)).toEqual({
      name: 'wwan0',
      state: 'connected',
      signal_pct: 70,
      technology: '4G',
      band: null,
      freq_mhz: null,
      rssi_dbm: null,
      rsrp_dbm: null,
      rsrq_db: null,
      snr_db: null,
      operator: 'TestTel',
      operator_code: '24001',
      roaming: false,
      sim_operator: 'TestTel',
      sim_iccid_end: '0000',
      model: 'RM520N-GL',
      imei_end: '4321',
    });
    expect([manager.calls.get('Setup'), manager.calls.get('GetCellInfo')]).toEqual([undefined, undefined]);
    manager.set('Modem/0', `${mm}.Modem.Modem3gpp`, {
      OperatorName: ['s', 'Orange F'],
      RegistrationState: ['u', 5],
    });
    expect(await next(({ roaming }) => roaming === true)).toMatchObject({ operator: 'Orange F' });
  });

  it('has strength and band where the configuration asks for them', async () => {
    const { next } = await start({ signal_interval_s: 5, interval_s: 1 });
    expect(await next(({ band }) => band !== null)).toMatchObject({ band: 'B20' });
  });

  it('names a modem that no longer answers, and reports the other one and both links', async () => {
    const { lab, manager, next } = await start(
      { signal_interval_s: 5, interval_s: 1, timeout_s: 0.3 },
      (fake) => {
        fake.stuck = 0;
        fake.add({ index: 1, port: 'wwan1', imei: '860000000001234' });
      },
    );
    await next(() => true);
    await lab.outbox.until(({ channel, data }) => {
      if (!channel.endsWith('/cellular')) return false;
      const { modems } = gatewayFeeds.cellular.parse(data);
      return modems.some(({ name, band }) => name === 'wwan1' && band === 'B20');
    });
    manager.set('Modem/0', `${mm}.Modem.Modem3gpp`, { OperatorName: ['s', 'Telia'] });
    await lab.isp('Telia');
    expect(lab.view()?.state).toBe('up');
    const lines = lab.log.lines.filter(({ sentence }) => sentence === texts.modem_stuck);
    expect(lines).toMatchObject([{ facts: { modem: 'RM520N-GL', remedy: texts.reset_modem } }]);
    expect(manager.calls.get('Setup')).toBe(2);
    expect(lab.log.at('warn')).not.toContain(texts.signal_refused);
  });

  it.each([
    ['ModemManager1.Error.Serial.ResponseTimeout', texts.modem_stuck, texts.reset_modem],
    ['libqmi.Error.Core.Timeout', texts.modem_stuck, texts.reset_modem],
    ['ModemManager1.Error.Core.Unsupported', texts.signal_unsupported, texts.stop_asking],
    ['DBus.Error.UnknownMethod', texts.signal_unsupported, texts.stop_asking],
  ])('logs %s as what it is, and not as a missing right', async (error, sentence, remedy) => {
    const { lab, next } = await start({ signal_interval_s: 5, interval_s: 1 }, (fake) => {
      fake.radioError = `org.freedesktop.${error}`;
    });
    await next(() => true);
    await eventually('the line', () => lab.log.at('warn').length > 0);
    expect(lab.log.lines.filter(({ level }) => level === 'warn')).toMatchObject([
      { sentence, facts: { modem: 'RM520N-GL', reason: 'refused by the fake', remedy } },
    ]);
  });

  it('asks again for figures that a modem could not give yet', async () => {
    const { lab, manager, next } = await start({ signal_interval_s: 5, interval_s: 1 }, (fake) => {
      fake.radioError = 'org.freedesktop.ModemManager1.Error.Core.WrongState';
    });
    await next(({ band }) => band === null);
    manager.radioError = undefined;
    await next(({ band }) => band === 'B20');
    expect(lab.log.at('warn')).toEqual([]);
  });

  it('continues without them where ModemManager refuses, and reports once what to allow', async () => {
    const { lab, next, manager } = await start({ signal_interval_s: 5, interval_s: 1 }, (fake) => {
      fake.mayControl = false;
    });
    expect(await next(() => true)).toMatchObject({ band: null, rsrp_dbm: null, signal_pct: 70 });
    manager.set('Modem/0', `${mm}.Modem`, { AccessTechnologies: ['u', 1 << 15] });
    expect(await next(({ technology }) => technology === '5G')).toMatchObject({ rsrp_dbm: null });
    const warnings = lab.log.lines.filter(({ sentence }) => sentence === texts.signal_refused);
    expect(warnings).toMatchObject([{ facts: { remedy: texts.allow_signal } }]);
  });
});

describe('The serving cell', () => {
  it.each([
    [{ earfcn: 6_300 }, { band: 'B20', freq_mhz: null }],
    [{ earfcn: 1_300 }, { band: 'B3', freq_mhz: null }],
    [{ earfcn: 66_786 }, { band: 'B66', freq_mhz: null }],
    [{ earfcn: 60_000 }, { band: null, freq_mhz: null }],
    [{ nrarfcn: 632_628 }, { band: null, freq_mhz: 3_489.42 }],
    [{ nrarfcn: 156_510 }, { band: null, freq_mhz: 782.55 }],
  ])('is that of %j', (cell, expected) => {
    expect(
      servingCell([
        { serving: false, earfcn: 100 },
        { ...cell, serving: true },
      ]),
    ).toEqual(expected);
  });

  it('gives no strength of a technology that reports none', () => {
    const none = { rssi_dbm: null, rsrp_dbm: null, rsrq_db: null, snr_db: null };
    expect(strengthOf({ signal: {} })).toEqual(none);
    expect(strengthOf({ signal: { Lte: { rsrp: -32_768 } } })).toEqual(none);
    expect(strengthOf({ signal: { Nr5g: {}, Lte: { rsrp: -97.04, rsrq: -11 } } })).toEqual({
      ...none,
      rsrp_dbm: -97,
      rsrq_db: -11,
    });
  });
});
