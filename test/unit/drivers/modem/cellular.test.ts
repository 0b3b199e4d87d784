/** Signal, band, operator and SIM as data of the gateway, against a real dbus-daemon. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { servingCell, strengthOf } from '../../../../drivers/modem/cellular.ts';
import { type Modem, networkProperties } from '../../../../drivers/modem/dbus/properties.ts';
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
    [{ nrarfcn: 4_294_967_295 }, { band: null, freq_mhz: null }],
  ])('is that of %j', (cell, expected) => {
    expect(
      servingCell([
        { serving: false, earfcn: 100 },
        { ...cell, serving: true },
      ]),
    ).toEqual(expected);
  });

  const none = { rssi_dbm: null, rsrp_dbm: null, rsrq_db: null, snr_db: null };
  const strength = (signal: Modem['signal'], cells: Modem['cells'] = []) => strengthOf({ signal, cells });
  const lte = { rssi: -68, rsrp: -97.04, rsrq: -11, snr: 9.4 };
  const lte_figures = { rssi_dbm: -68, rsrp_dbm: -97, rsrq_db: -11, snr_db: 9.4 };

  it('gives no strength of a technology that reports none', () => {
    expect(strength({})).toEqual(none);
    expect(strength({ Nr5g: {}, Lte: lte })).toEqual(lte_figures);
    expect(strength({ Lte: { rssi: -102 } })).toEqual({ ...none, rssi_dbm: -102 });
  });

  // As firmware reports a carrier that it has not measured (yet), beside LTE.
  it.each([
    ['particle-iot/device-os#2078: zeros', { rsrp: 0, rsrq: 0, snr: 0 }],
    ['freedesktop/libqmi#2: the least number of 16 bits', { rsrp: -32_768, rsrq: -32_768, snr: -3_276.8 }],
    ['mroczis/netmonster-core#42: absolute values', { rsrp: 90, rsrq: 11, snr: 14 }],
    ['nrfconnect/sdk-nrf#1294: 255 as an index', { rsrp: 114, rsrq: 0, snr: 0 }],
    ['dr-dolomite/QuecManager-JS#6: the channel number', { rsrp: 520_110, rsrq: -11, snr: 14 }],
    ['3GPP TS 38.133: below what can be measured', { rsrp: -157, rsrq: -11, snr: 14 }],
  ])('gives the figures of LTE where those of 5G are none: %s', (_name, Nr5g) => {
    expect(strength({ Nr5g, Lte: lte })).toEqual(lte_figures);
    expect(strength({ Nr5g })).toEqual(none);
  });

  it.each([
    [
      'a figure of LTE at a time',
      { Lte: { ...lte, snr: -3_276.8, rsrq: 3 } },
      { rssi_dbm: -68, rsrp_dbm: -97 },
    ],
    ['RSSI of LTE as +CSQ 99 gives it', { Lte: { rsrp: -97, rssi: 85 } }, { rsrp_dbm: -97 }],
    ['UMTS', { Umts: { rscp: -121, ecio: -3 } }, {}],
    ['Ec/Io of UMTS', { Umts: { rscp: -90, ecio: 3 } }, { rsrp_dbm: -90 }],
    ['GSM', { Gsm: { rssi: 0 } }, {}],
    ['no number', { Lte: { rsrp: Number.NaN, rsrq: -11 } }, {}],
  ])('leaves out what is beyond the range of its definition: %s', (_name, signal, expected) => {
    expect(strength(signal)).toEqual({ ...none, ...expected });
  });

  it('gives both carriers of 5G that needs LTE (akpw/mktxp#269)', () => {
    const signal = {
      Lte: { rssi: -48, rsrp: -83, rsrq: -14, snr: -2 },
      Nr5g: { rsrp: -90, rsrq: -10, snr: 14 },
    };
    const cells = [
      { serving: true, earfcn: 6_300 },
      { serving: true, nrarfcn: 632_628 },
    ];
    expect(strength(signal, cells)).toEqual({
      ...none,
      rsrp_dbm: -90,
      rsrq_db: -10,
      snr_db: 14,
      anchor: { band: 'B20', rssi_dbm: -48, rsrp_dbm: -83, rsrq_db: -14, snr_db: -2 },
    });
  });
});

describe('The name of an operator', () => {
  it.each([
    ['004F00720061006E00670065', 'Orange'],
    ['4E2D56FD79FB52A8', '中国移动'],
    ['041C04220421', 'МТС'],
    ['4F72616E6765', 'Orange'],
    [
      Buffer.from('A name of more than sixteen characters', 'utf16le').swap16().toString('hex'),
      'A name of more than sixteen characters',
    ],
    ['26201', '26201'],
    ['20201010', '20201010'],
    ['Cafe', 'Cafe'],
    ['D800DC00D800D800', 'D800DC00D800D800'],
    ['3 HK', '3 HK'],
  ])('in %s is %s', (raw, name) => {
    expect(networkProperties.parse({ OperatorName: raw }).OperatorName).toBe(name);
  });

  it.each([
    ['24001', '24001'],
    ['310260', '310260'],
    ['00320036003200300031', '26201'],
    ['0', undefined],
    ['2620100', undefined],
    ['FFFFF', undefined],
  ])('has a code beside it: %s is %s', (raw, code) => {
    expect(networkProperties.parse({ OperatorCode: raw }).OperatorCode).toBe(code);
  });
});
