/** The power driver against a upsd that misbehaves on command. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readingOf, wordsOf } from '../../../../drivers/power/nut-lines.ts';
import { power } from '../../../../drivers/power/power.ts';
import { DeviceRejected, DeviceUnreachable } from '../../../../src/errors.ts';
import { type FakeUpsd, startFakeUpsd } from '../../../fakes/fake-upsd.ts';
import { driverLab } from '../../../support/driver-lab.ts';
import { withDirectory } from '../../../support/temporary.ts';

let upsd: FakeUpsd;
beforeEach(async () => {
  upsd = await startFakeUpsd();
  upsd.upses.set('kit', new Map(Object.entries({ 'ups.status': 'OL CHRG', 'battery.charge': '87' })));
});
afterEach(async () => upsd.lose());

const start = (nut: object = {}) => driverLab(power, { interval_s: 1, nut: { port: upsd.port, ...nut } });
const set = (name: string, value: string): void => void upsd.upses.get('kit')?.set(name, value);

describe('the variables of a UPS', () => {
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

  it('believes the charger before the status', () => {
    const variables = { 'ups.status': 'OL', 'battery.charge': '98', 'battery.charger.status': 'floating' };
    expect(reading(variables)).toMatchObject({ percent: 98, charging: false });
  });

  it('takes nothing from a UPS whose driver is still starting', () => {
    expect(reading({ 'ups.status': 'WAIT', 'battery.charge': '0' })).toMatchObject({
      percent: null,
      charging: null,
      reason: 'the driver of the UPS is still starting',
    });
  });

  it('does not guess a charge from the voltage', () => {
    expect(reading({ 'ups.status': 'OL', 'battery.voltage': '25.6' })).toMatchObject({
      percent: null,
      voltage_v: 25.6,
    });
  });

  it('reads quoted words with quotes, backslashes and spaces in them', () => {
    expect(wordsOf(String.raw`VAR kit ups.alarm "say \"hot\" C:\\x"`)).toEqual([
      'VAR',
      'kit',
      'ups.alarm',
      String.raw`say "hot" C:\x`,
    ]);
    expect(wordsOf('VAR kit x ""')).toEqual(['VAR', 'kit', 'x', '']);
  });
});

it('reports charge, status, voltage and runtime, and follows what changes', async () => {
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

it.each(['DATA-STALE', 'DRIVER-NOT-CONNECTED'])(
  'reports unknown, not the last value, while upsd says %s',
  async (code) => {
    const lab = start({ ups: 'kit' });
    await lab.until('first reading', () => lab.kit.battery === 87);
    upsd.refuse = code;
    await lab.until('unknown', () => lab.kit.battery === null && lab.kit.battery_charging === null);
    expect(String(lab.shown.facts['reason'])).toMatch(/check/u);
    upsd.refuse = undefined;
    await lab.until('back', () => lab.kit.battery === 87);
    await lab.stop();
  },
);

it('names the UPSes that exist when the configured one does not', async () => {
  upsd.upses.set('rack', new Map());
  await expect(start({ ups: 'kitt' }).ended).rejects.toThrow(
    /no UPS is called kitt; it has kit, rack; set options\.nut\.ups/u,
  );
  await expect(start().ended).rejects.toThrow(DeviceRejected);
  upsd.upses.clear();
  await expect(start().ended).rejects.toThrow(/it has none/u);
});

it('gives user name and password, and stops for good when they are refused', async () => {
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

it('fails when upsd is lost, so that it is tried again', async () => {
  const lab = start();
  await lab.until('reading', () => lab.kit.battery === 87);
  await upsd.lose();
  await expect(lab.ended).rejects.toThrow(DeviceUnreachable);
});

it('gives up on a upsd that nobody runs, that is mute, or that answers without end', async () => {
  upsd.manner = 'endless';
  await expect(start().ended).rejects.toThrow(/answers without end/u);
  upsd.manner = 'mute';
  const mute = start();
  await expect(mute.ended).rejects.toThrow(/no answer within 5 s/u);
  expect(mute.said).toEqual([]);
  await upsd.lose();
  await expect(start().ended).rejects.toThrow(DeviceUnreachable);
});

it('warns once each way about a low battery and about an alarm', async () => {
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
  expect(lab.log.at('warn')).toEqual([
    'the battery is low; charge it or switch off what is not needed',
    'the UPS has an alarm',
  ]);
  upsd.upses.get('kit')?.delete('ups.alarm');
  set('ups.status', 'OL CHRG');
  await reaches('30');
  expect(lab.log.at('info')).toEqual(['the battery is no longer low', 'the alarm of the UPS is over']);
  await lab.stop();
});
