/** What ModemManager's numbers mean: links by ports, operators, reasons, technologies, fixes and their age. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Fixes, statusFacts } from '../../../../drivers/modem/modem.ts';
import { linksOf } from '../../../../drivers/modem/links.ts';
import { bearerProperties, type Modem, modemProperties } from '../../../../drivers/modem/dbus/properties.ts';
import { causeOf, reasonOf, technologyOf } from '../../../../drivers/modem/words.ts';
import { forAll } from '../../../support/for-all.ts';

interface Told {
  readonly index?: number;
  readonly modem?: object;
  readonly network?: Modem['network'];
  readonly sim?: Modem['sim'];
  readonly bearers?: readonly object[];
}

const at_home = { RegistrationState: 1, OperatorName: 'TestTel' };

function modemOf({ index = 0, modem = {}, network = at_home, sim = {}, bearers = [] }: Told = {}): Modem {
  const ports = [
    ['cdc-wdm0', 6],
    ['wwan0', 2],
  ];
  return {
    path: `/org/freedesktop/ModemManager1/Modem/${index}`,
    modem: modemProperties.parse({ State: 11, Ports: ports, ...modem }),
    network,
    location: {},
    signal: {},
    cells: [],
    sim,
    bearers: bearers.map((each) => bearerProperties.parse(each)),
  };
}

const names = (modem: Modem, interfaces = {}) => [...linksOf([modem], interfaces).keys()];
const isp = (told: Told) => linksOf([modemOf(told)], {}).get('wwan0')?.isp;

describe('the link of a modem', () => {
  it('is that of the connected bearer, also when it is no port itself', () => {
    const bearers = [{ Interface: 'qmapmux0.0', Connected: true }];
    expect(names(modemOf({ bearers }))).toEqual(['qmapmux0.0']);
  });

  it('is each network port while nothing is connected', () => {
    const Ports = [
      ['wwan0', 2],
      ['wwan1', 2],
      ['ttyUSB2', 3],
    ];
    const bearers = [{ Interface: 'wwan0', Connected: false }];
    expect(names(modemOf({ modem: { State: 8, Ports }, bearers }))).toEqual(['wwan0', 'wwan1']);
  });

  it('is unknown when the modem dials, until it is configured', () => {
    const modem = modemOf({
      modem: { Ports: [['ttyUSB2', 3]] },
      bearers: [{ Interface: 'ttyUSB2', Connected: true }],
    });
    expect(names(modem)).toEqual([]);
    expect(names(modem, { ttyUSB2: 'ppp0' })).toEqual(['ppp0']);
    expect(names(modem, { constructor: 'ppp0' })).toEqual([]);
  });

  it('is the connected modem’s when two claim it, else the newer one’s', () => {
    const old = modemOf({ index: 0, modem: { State: 8 } });
    const next = modemOf({ index: 1, modem: { State: 7 } });
    expect(linksOf([old, next], {}).get('wwan0')?.reason).toBe('modem: searching for a network');
    const connected = modemOf({ index: 0 });
    expect(linksOf([connected, next], {}).get('wwan0')?.reason).toBeNull();
  });
});

describe('the operator', () => {
  it('is the one that serves now, marked abroad', () => {
    expect(isp({})).toBe('TestTel');
    expect(isp({ network: { RegistrationState: 5, OperatorName: 'Orange F' } })).toBe('Orange F (roaming)');
    expect(isp({ network: { RegistrationState: 10, OperatorCode: '20801' } })).toBe('20801 (roaming)');
  });

  it('is that of the SIM at home when the network has no name, never abroad', () => {
    const sim = { OperatorName: 'HomeTel' };
    expect(isp({ sim, network: { RegistrationState: 1, OperatorCode: '24001' } })).toBe('HomeTel');
    expect(isp({ network: { RegistrationState: 1, OperatorCode: '24001' } })).toBe('24001');
    expect(isp({ sim, network: { RegistrationState: 5 } })).toBeUndefined();
  });

  it.each([0, 2, 3, 4, 8, undefined])('is unknown in registration state %s', (RegistrationState) => {
    expect(isp({ network: { RegistrationState, OperatorName: 'TestTel' } })).toBeUndefined();
  });
});

describe('the reason', () => {
  it.each([
    [{ State: -1, StateFailedReason: 2 }, 'no SIM card'],
    [{ State: -1, StateFailedReason: 99 }, 'failed'],
    [{ State: 2, UnlockRequired: 2 }, 'SIM PIN is needed'],
    [{ State: 2, UnlockRequired: 4 }, 'SIM PUK is needed'],
    [{ State: 2, UnlockRequired: 12 }, 'locked to a network or device'],
    [{ State: 3 }, 'switched off'],
    [
      {
        State: -1,
        StateFailedReason: 2,
        PrimarySimSlot: 1,
        SimSlots: ['/', '/org/freedesktop/ModemManager1/SIM/4'],
      },
      'no SIM card in slot 1 of 2, which is the one that is used; slot 2 has one (mmcli --set-primary-sim-slot=2)',
    ],
    [
      { State: -1, StateFailedReason: 5, PrimarySimSlot: 2, SimSlots: ['/', '/'] },
      'eSIM without a profile in slot 2 of 2, which is the one that is used',
    ],
    [{ State: -1, StateFailedReason: 2, PrimarySimSlot: 1, SimSlots: ['/'] }, 'no SIM card'],
    [{ State: 7 }, 'searching for a network'],
    [{ State: 8 }, 'registered, not connected'],
    [{ State: 10 }, 'connecting'],
    [{ State: 77 }, 'state 77'],
    [{ State: 'eleven' }, 'state not known yet'],
  ])('of %j is: %s', (modem, words) => {
    expect(reasonOf(modemOf({ modem }))).toBe(`modem: ${words}`);
  });

  it('names the low power of a modem with an FCC lock, and a connection that may not roam', () => {
    expect(reasonOf(modemOf({ modem: { State: 3, PowerState: 2 } }))).toMatch(/low power.*FCC lock$/u);
    const network = { RegistrationState: 5, OperatorName: 'Orange F' };
    expect(reasonOf(modemOf({ modem: { State: 8 }, network }))).toMatch(/it roams.*home-only/u);
  });

  it('is the refusal of the network', () => {
    const refused = { RegistrationState: 3 };
    // ModemManager leaves a modem that is refused enabled, not searching.
    expect(reasonOf(modemOf({ modem: { State: 6 }, network: refused }))).toBe(
      'modem: refused by the network',
    );
    expect(reasonOf(modemOf({ modem: { State: 7 }, network: refused }))).toBe(
      'modem: refused by the network',
    );
    const bearers = [{ ConnectionError: ['x.Error', ''] }, { ConnectionError: ['x.Error', 'Unknown APN'] }];
    expect(reasonOf(modemOf({ modem: { State: 8 }, bearers }))).toBe(
      'modem: registered, not connected: Unknown APN',
    );
  });

  it('is none while connected, unless the connection is suspended', () => {
    expect(reasonOf(modemOf())).toBeNull();
    const bearers = [{ Connected: true, Suspended: true }];
    expect(reasonOf(modemOf({ bearers }))).toMatch(/suspended/u);
  });
});

describe('the technology', () => {
  it.each([
    [0, null],
    [0xff_ff_ff_ff, null],
    [1 << 1, '2G'],
    [1 << 5, '3G'],
    [1 << 14, '4G'],
    [(1 << 15) | (1 << 14), '5G + 4G'],
    [2 ** 31, null],
  ])('of %i is %s', (AccessTechnologies, name) => {
    expect(technologyOf(modemOf({ modem: { AccessTechnologies } }))).toBe(name);
  });
});

describe('the line of a modem', () => {
  it('never shows a whole IMEI, and names the SIM abroad', () => {
    const facts = statusFacts(
      [
        modemOf({
          modem: {
            EquipmentIdentifier: '860000000004321',
            SignalQuality: [55, true],
            AccessTechnologies: 1 << 14,
          },
          network: { RegistrationState: 5, OperatorName: 'Orange F' },
          sim: { OperatorName: 'HomeTel' },
        }),
        modemOf({ index: 4, modem: { Ports: [] } }),
      ],
      {},
    );
    expect(facts).toEqual({
      modems: 2,
      wwan0: 'connected, 4G, 55 %, Orange F (roaming), SIM of HomeTel, IMEI ...4321',
      'modem 4': 'connected, TestTel',
    });
  });
});

describe('a fix', () => {
  const noon_ms = Date.UTC(2026, 10, 21, 12, 0, 0);
  const raw = (utc: string, latitude = 59.3) => ({
    'utc-time': utc,
    latitude,
    longitude: 18.1,
    altitude: 45,
  });

  it.each([
    // It may be one of another day.
    ['120000.00', noon_ms, 60_000],
    ['115500', noon_ms, 300_000],
    // The receiver's clock is a little ahead.
    ['120005.5', noon_ms, 60_000],
    // Across midnight.
    ['235500.0', Date.UTC(2026, 10, 22, 0, 0, 5), 305_000],
    // A receiver that has seen nothing for 13 hours.
    ['230000', noon_ms, 46_800_000],
  ])('of %s is dated by its time of day when it is the first, and not fresh', (utc, time_ms, age_ms) => {
    expect(new Fixes().read(raw(utc), time_ms)).toMatchObject({ source: 'cellular', altitude: null, age_ms });
  });

  it('is new when it changed, however wrong the clock of the gateway is, and read once', () => {
    const fixes = new Fixes();
    expect(fixes.read(raw('100000.0'), 0)?.age_ms).not.toBeUndefined();
    expect(fixes.read(raw('100000.0'), 1_000)).toBeUndefined();
    expect(fixes.read(raw('100001.0'), 2_000)?.age_ms).toBe(0);
  });

  it.each([
    undefined,
    'text',
    raw('noon'),
    raw('120000', 91),
    raw('120000', Number.NaN),
    { 'utc-time': '120000', latitude: 0, longitude: 0 },
    { latitude: 1, longitude: 1 },
  ])('is none: %j', (value) => {
    expect(new Fixes().read(value, noon_ms)).toBeUndefined();
  });

  it('is never older than a day nor fresh when it is the first', () => {
    const two = (max: number) => fc.nat({ max }).map((each) => String(each).padStart(2, '0'));
    forAll(
      two(23),
      two(59),
      two(59),
      fc.nat({ max: 4_000_000_000_000 }),
      (hours, minutes, seconds, time_ms) => {
        const age_ms = new Fixes().read(raw(`${hours}${minutes}${seconds}`), time_ms)?.age_ms ?? -1;
        expect(age_ms >= 60_000 && age_ms <= 86_400_000).toBe(true);
      },
    );
  });
});

it.each([
  [null, { State: 11 }],
  ['no_sim', { State: -1, StateFailedReason: 2 }],
  // An eUICC without an enabled profile: https://github.com/particle-iot/device-os/pull/2953
  ['no_sim', { State: -1, StateFailedReason: 5 }],
  ['no_sim', { State: 2, UnlockRequired: 2 }],
  // PIN2 stays asked for while the modem is connected: https://github.com/Ysurac/openmptcprouter/issues/3979
  [null, { State: 11, UnlockRequired: 3 }],
  ['not_registered', { State: 6 }],
  ['no_signal', { State: 7, SignalQuality: [0, true] }],
  ['not_registered', { State: 7, SignalQuality: [30, true] }],
  ['not_connected', { State: 8 }],
  ['device', { State: 3 }],
])('the cause %s follows from %j', (cause, modem) => {
  expect(causeOf(modemOf({ modem }))).toBe(cause);
});
