/** The power driver against a upsd that misbehaves on command. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createSteady, createWarnings, power, readingOf, wordsOf } from '../../../../drivers/power/power.ts';
import { unknown_reading } from '../../../../drivers/power/reading.ts';
import { texts } from '../../../../drivers/power/texts.ts';
import { DeviceRejected, DeviceUnreachable } from '../../../../src/platform/errors.ts';
import { type FakeUpsd, startFakeUpsd } from '../../../fakes/services/fake-upsd.ts';
import { driverLab } from '../../../support/drivers/driver-lab.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { withDirectory } from '../../../support/temporary.ts';

let upsd: FakeUpsd;
beforeEach(async () => {
  upsd = await startFakeUpsd();
  upsd.upses.set('kit', new Map(Object.entries({ 'ups.status': 'OL CHRG', 'battery.charge': '87' })));
});
afterEach(async () => upsd.lose());

const start = (nut: object = {}) => driverLab(power, { interval_s: 1, nut: { port: upsd.port, ...nut } });
const set = (name: string, value: string): void => void upsd.upses.get('kit')?.set(name, value);

describe('The variables of a UPS', () => {
  const reading = (variables: Readonly<Record<string, string>>) =>
    readingOf(new Map(Object.entries(variables)));

  it.each<[string, string | undefined, boolean | null]>([
    ['OL CHRG', '40', true],
    ['OB DISCHRG', '40', false],
    ['OB', '40', false],
    ['OL', '100', false],
    ['OL', '40', null],
    ['OL', undefined, null],
    ['OFF', '40', null],
  ])('reads the status %s at %s percent as charging: %s', (status, charge, charging) => {
    const variables = { 'ups.status': status, ...(charge === undefined ? {} : { 'battery.charge': charge }) };
    expect(reading(variables).charging).toBe(charging);
  });

  it.each<[string, number | null]>([
    ['100', 100],
    ['104', 100],
    ['255', null],
    ['-1', null],
    ['65535', null],
    ['87,5', null],
  ])('give no charge that is none: %s', (charge, percent) => {
    const { percent: read, reason } = reading({ 'ups.status': 'OL', 'battery.charge': charge });
    expect([read, reason === null]).toEqual([percent, percent !== null]);
  });

  it('give no voltage or runtime that is none', () => {
    const sentinels = { 'battery.voltage': '6553.5', 'battery.runtime': '4294967295' };
    expect(reading({ 'ups.status': 'OL', ...sentinels })).toMatchObject({ voltage_v: null, runtime_s: null });
    const usual = { 'battery.voltage': '27.3', 'battery.runtime': '98301' };
    expect(reading({ 'ups.status': 'OL', ...usual })).toMatchObject({ voltage_v: 27.3, runtime_s: 98_301 });
  });

  it('prefer the status of the charger to that of the UPS', () => {
    const variables = { 'ups.status': 'OL', 'battery.charge': '98', 'battery.charger.status': 'floating' };
    expect(reading(variables)).toMatchObject({ percent: 98, charging: false });
  });

  it('are ignored while the UPS driver is starting', () => {
    expect(reading({ 'ups.status': 'WAIT', 'battery.charge': '0' })).toMatchObject({
      percent: null,
      charging: null,
      reason: texts.ups_starting,
    });
  });

  it('name a forced shutdown as an alarm, before the alarm of the UPS itself', () => {
    expect(reading({ 'ups.status': 'FSD OB LB' }).alarm).toBe(texts.forced_shutdown);
    expect(reading({ 'ups.status': 'FSD OB LB', 'ups.alarm': 'Fan' }).alarm).toBe(
      `${texts.forced_shutdown}; Fan`,
    );
  });

  it('do not give a charge from the voltage', () => {
    expect(reading({ 'ups.status': 'OL', 'battery.voltage': '25.6' })).toMatchObject({
      percent: null,
      voltage_v: 25.6,
    });
  });

  it('are parsed with quotes, backslashes and spaces in quoted words', () => {
    expect(wordsOf(String.raw`VAR kit ups.alarm "say \"hot\" C:\\x"`)).toEqual([
      'VAR',
      'kit',
      'ups.alarm',
      String.raw`say "hot" C:\x`,
    ]);
    expect(wordsOf('VAR kit x ""')).toEqual(['VAR', 'kit', 'x', '']);
  });

  it('are the first four words of a line, however many it has', () => {
    expect(wordsOf('" '.repeat(131_000))).toHaveLength(4);
    expect(wordsOf(`VAR kit x "1" ${'a '.repeat(131_000)}`)).toEqual(['VAR', 'kit', 'x', '1']);
  });
});

it('reports charge, status, voltage and runtime, and every change of them', async () => {
  set('battery.runtime', '5400');
  set('battery.voltage', '25.6');
  const lab = start();
  await lab.until('first reading', () => lab.kit.battery === 87 && lab.kit.battery_charging === true);
  expect(lab.shown.facts).toMatchObject({ voltage_v: 25.6, runtime_s: 5_400, state: 'OL CHRG' });
  upsd.manner = 'torn';
  set('battery.charge', '41');
  set('ups.status', 'OB DISCHRG');
  await lab.until('discharge', () => lab.kit.battery === 41 && lab.kit.battery_charging === false);
  expect(upsd.heard.some((line) => line.startsWith('LOGIN'))).toBe(false);
  await lab.stop();
});

// Gauges that read 0 or 100 once in a while: https://github.com/rricharz/pi-top-battery-status/issues/4,
// https://github.com/PiSupply/PiJuice/issues/280, https://github.com/PiSupply/PiJuice/issues/107
it.each<[string, readonly number[], readonly number[]]>([
  ['a charge that is 0 once', [94, 0, 94, 93], [94, 94, 94, 93]],
  ['a charge that jumps to and fro', [28, 75, 28, 75, 28], [28, 28, 28, 28, 28]],
  ['a battery that was changed', [12, 98, 97], [12, 12, 97]],
  ['a charge that falls fast', [94, 80, 62, 45], [94, 80, 62, 45]],
  ['a gauge that jumps all the time', [10, 50, 90, 20], [10, 10, 90, 90]],
])('believes a large step once the next reading confirms it: %s', (_, read, shown) => {
  const steady = createSteady();
  expect(read.map((percent) => steady({ ...unknown_reading, percent }).percent)).toEqual(shown);
});

it('believes at once that a battery is empty which reports itself low, and leaves unknown what is unknown', () => {
  const steady = createSteady();
  const charges = [94, null, 3].map((percent) => ({
    ...unknown_reading,
    percent,
    reports_low: percent === 3,
  }));
  expect(charges.map((each) => steady(each).percent)).toEqual([94, null, 3]);
});

it.each(['DATA-STALE', 'DRIVER-NOT-CONNECTED'])(
  'reports the last charge for a minute while upsd answers %s, then an unknown one',
  async (code) => {
    const lab = start({ ups: 'kit' });
    await lab.until('first reading', () => lab.kit.battery === 87);
    // Stale for a moment every few minutes, as networkupstools/nut#3576: no gap and no line.
    const asked = (): number => upsd.heard.filter((line) => line === 'LIST VAR kit').length;
    upsd.refuse = code;
    const before = asked();
    await lab.until('asked again', () => asked() > before + 2);
    upsd.refuse = undefined;
    set('battery.charge', '86');
    await lab.until('fresh again', () => lab.kit.battery === 86);
    expect([lab.log.at('warn'), lab.log.at('info')]).toEqual([[], []]);
    set('battery.charge', '87');
    upsd.refuse = code;
    await lab.until('unknown', () => lab.kit.battery === null && lab.kit.battery_charging === null);
    expect(String(lab.shown.facts['reason'])).toMatch(/check/u);
    upsd.refuse = undefined;
    await lab.until('back', () => lab.kit.battery === 87);
    expect(lab.log.at('warn')).toEqual([texts.ups_data_lost]);
    expect(lab.log.at('info')).toEqual([texts.ups_data_back]);
    await lab.stop();
  },
);

it.each(['constructor', 'toString', '__proto__'])(
  'is lost to a upsd that answers the name of a thing that every object has: %s',
  async (code) => {
    upsd.refuse = code;
    await expect(start({ ups: 'kit' }).ended).rejects.toThrow(`upsd at 127.0.0.1:${upsd.port}: ${code}`);
  },
);

it('lists the UPS names that exist when the configured one does not, and is retried until it does', async () => {
  upsd.upses.set('rack', new Map());
  await expect(start({ ups: 'kitt' }).ended).rejects.toThrow(
    `${texts.ups_unknown('kitt')}; ${texts.ups_known('kit, rack')}; set options.nut.ups`,
  );
  await expect(start({ ups: 'kitt' }).ended).rejects.toThrow(DeviceUnreachable);
  await expect(start().ended).rejects.toThrow(DeviceUnreachable);
  upsd.upses.clear();
  await expect(start().ended).rejects.toThrow(texts.ups_none);
});

it('names few of many UPS and ends with the remedy', async () => {
  for (let n = 0; n < 1_000; n += 1) upsd.upses.set(`${n}${'x'.repeat(100)}`, new Map());
  await expect(start().ended).rejects.toThrow(/^.{100,500}; set options\.nut\.ups$/u);
});

it('logs in with user name and password, and is rejected when upsd refuses them', async () => {
  upsd.password = String.raw`a\"b\\c`;
  await withDirectory(async (dir) => {
    const password_file = join(dir, 'password');
    await writeFile(password_file, 'a"b\\c\n', { mode: 0o600 });
    const lab = start({ username: 'kit', password_file });
    await lab.until('reading', () => lab.kit.battery === 87);
    await lab.stop();
    upsd.password = 'another';
    const refused = start({ username: 'kit', password_file });
    await expect(refused.ended).rejects.toThrow(DeviceRejected);
    await expect(refused.ended).rejects.toThrow(/ACCESS-DENIED; check options\.nut\.username/u);
    const missing = start({ username: 'kit', password_file: join(dir, 'none') });
    await expect(missing.ended).rejects.toThrow(/nut\.password_file/u);
  });
});

it('reconnects when upsd has closed the connection, as it does after a minute of silence', async () => {
  const lab = start();
  await lab.until('reading', () => lab.kit.battery === 87);
  await upsd.lose();
  await upsd.restore();
  set('battery.charge', '41');
  await lab.until('the next reading', () => lab.kit.battery === 41);
  expect(lab.said.filter((said) => JSON.stringify(said).includes('"battery":null'))).toEqual([]);
  await lab.stop();
});

it('ends as unreachable when upsd is lost, so that it is retried', async () => {
  const lab = start();
  await lab.until('reading', () => lab.kit.battery === 87);
  expect(lab.shown.facts).toMatchObject({ battery_pct: 87 });
  await upsd.lose();
  await expect(lab.ended).rejects.toThrow(DeviceUnreachable);
  expect(lab.shown.facts).toEqual({});
});

it('ends as unreachable when upsd is not running, does not answer or sends an endless reply', async () => {
  upsd.manner = 'endless';
  await expect(start().ended).rejects.toThrow(texts.endless_answer);
  upsd.manner = 'mute';
  const mute = start();
  await expect(mute.ended).rejects.toThrow(texts.answer_timeout(5));
  expect(mute.said).toEqual([]);
  await upsd.lose();
  await expect(start().ended).rejects.toThrow(DeviceUnreachable);
});

it('logs a low battery and a UPS alarm once at their begin and once at their end', async () => {
  set('battery.charge', '21');
  set('ups.status', 'OB DISCHRG');
  const lab = start();
  const reaches = async (charge: string): Promise<void> => {
    set('battery.charge', charge);
    await lab.until(`${charge} %`, () => lab.kit.battery === Number(charge));
  };
  await reaches('21');
  expect(lab.log.at('warn')).toEqual([]);
  await reaches('19');
  await reaches('22');
  await reaches('18');
  set('ups.status', 'OB DISCHRG LB ALARM');
  set('ups.alarm', 'Replace battery!');
  await reaches('17');
  expect(lab.log.at('warn')).toEqual([texts.battery_low, texts.ups_alarm]);
  upsd.upses.get('kit')?.delete('ups.alarm');
  set('ups.status', 'OL CHRG');
  await reaches('30');
  expect(lab.log.at('info')).toEqual([texts.battery_recovered, texts.ups_alarm_cleared]);
  await lab.stop();
});

describe('A low battery that the UPS reports', () => {
  const warnings = (readings: readonly (readonly [status: string, charge: string | undefined])[]) => {
    const log = recordingLog();
    const warn = createWarnings(log, { low_pct: 20, interval_s: 10, nut: {} });
    for (const [status, charge] of readings) {
      const variables = {
        'ups.status': status,
        ...(charge === undefined ? {} : { 'battery.charge': charge }),
      };
      warn(readingOf(new Map(Object.entries(variables))));
    }
    return log.at('warn');
  };

  it.each([
    // networkupstools/nut#2347: LB and RB for a second at 99 %.
    [
      'for a second at a high charge',
      [
        ['OL', '99'],
        ['OL LB RB', '99'],
        ['OL', '99'],
      ],
      [],
    ],
    [
      'again and again for a second',
      Array.from({ length: 20 }, (_, at) => [at % 2 ? 'OL LB' : 'OL', '99'] as const),
      [],
    ],
    // networkupstools/nut#1942, #3087: LB as soon as the mains fail, at 95 % and 1,600 s.
    [
      'at a high charge for as long as it is on battery',
      Array.from({ length: 9 }, () => ['OB LB', '95'] as const),
      [texts.battery_contradicts],
    ],
    ['at a low charge', [['OB LB', '40']], [texts.battery_low]],
    ['without a charge', [['OB LB', undefined]], [texts.battery_low]],
    [
      'at a high charge that falls',
      [
        ['OB LB', '90'],
        ['OB LB', '45'],
      ],
      [texts.battery_low],
    ],
  ] as const)('%s', (_name, readings, expected) => {
    expect(warnings(readings)).toEqual(expected);
  });
});
