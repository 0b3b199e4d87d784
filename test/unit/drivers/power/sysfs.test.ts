/** Batteries as the kernel shows them: every oddity of real gauges, in a directory that looks like /sys. */
import { double, record } from 'fast-check';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { keep_ms } from '../../../../drivers/power/reading.ts';
import { batteryOf, kitReading, SysfsBatteries } from '../../../../drivers/power/sysfs.ts';
import { texts } from '../../../../drivers/power/texts.ts';
import { withDirectory } from '../../../support/temporary.ts';
import { forAll } from '../../../support/for-all.ts';

type Files = Readonly<Record<string, string>>;

async function supply(sys: string, name: string, files: Files): Promise<void> {
  const dir = join(sys, 'class/power_supply', name);
  await rm(dir, { recursive: true, force: true });
  await mkdir(dir, { recursive: true });
  for (const [file, text] of Object.entries(files)) await writeFile(join(dir, file), `${text}\n`);
}

/** A file that is there and cannot be read, as one that answers ENODATA. */
async function unreadable(sys: string, path: string): Promise<void> {
  const file = join(sys, 'class/power_supply', path);
  await rm(file, { recursive: true, force: true });
  await mkdir(file);
}

const { signal } = new AbortController();

async function readOnce(supplies: Readonly<Record<string, Files>>) {
  return withDirectory(async (sys) => {
    for (const [name, files] of Object.entries(supplies)) await supply(sys, name, files);
    const { percent, charging, voltage_v, reason } = await new SysfsBatteries(sys).read(0, signal);
    return { percent, charging, voltage_v, reason };
  });
}

const pack = { type: 'Battery', present: '1' };

describe('The batteries of the kernel', () => {
  it.each([
    ['Charging', true],
    ['Discharging', false],
    ['Not charging', false],
    ['Full', false],
    ['Unknown', null],
  ])('reads the status %s as charging: %s', async (status, charging) => {
    const reading = await readOnce({ BAT0: { ...pack, capacity: '73', status } });
    expect(reading).toMatchObject({ percent: 73, charging });
  });

  it('exclude the battery of a mouse, the mains and an empty bay', async () => {
    const reading = await readOnce({
      AC: { type: 'Mains', online: '1' },
      hidpp_battery_0: { type: 'Battery', scope: 'Device', capacity: '12', status: 'Discharging' },
      BAT1: { type: 'Battery', present: '0', capacity: '0', status: 'Unknown' },
    });
    expect(reading).toMatchObject({ percent: null, charging: null });
    expect(reading.reason).toMatch(/no battery in .*power_supply/u);
  });

  it('include a battery of the system without the attribute present', async () => {
    const system = { type: 'Battery', scope: 'System', capacity: '55', voltage_now: '12612000' };
    expect(await readOnce({ 'sbs-5-000b': system })).toMatchObject({ percent: 55, voltage_v: 12.61 });
  });

  it.each<[string, Files, number | null]>([
    ['energy', { energy_now: '25000000', energy_full: '50000000', charge_now: '1', charge_full: '1' }, 50],
    ['charge', { charge_now: '900000', charge_full: '1200000' }, 75],
    ['no full energy', { energy_now: '25000000', energy_full: '0' }, null],
    ['a capacity beyond full', { capacity: '104' }, 100],
    ['a capacity that is a sentinel', { capacity: '255', energy_now: '1', energy_full: '4' }, 25],
    ['a capacity that is no number', { capacity: 'n/a' }, null],
    ['a negative capacity and energy', { capacity: '-1', energy_now: '1', energy_full: '4' }, 25],
  ])('takes the percent from %s', async (_, files, percent) => {
    expect(await readOnce({ BAT0: { ...pack, ...files } })).toMatchObject({ percent });
  });

  it('are weighted by energy only where all of them report it', async () => {
    const big = { ...pack, capacity: '90', energy_full: '90000000', status: 'Discharging' };
    const small = { ...pack, capacity: '10', energy_full: '10000000', status: 'Charging' };
    expect(await readOnce({ BAT0: big, BAT1: small })).toMatchObject({ percent: 82, charging: true });
    const { energy_full: _, ...mute } = small;
    expect(await readOnce({ BAT0: big, BAT1: mute })).toMatchObject({ percent: 50 });
  });

  it('name a second battery that cannot be read and leave it out', async () => {
    const reading = await readOnce({ BAT0: { ...pack, capacity: '90' }, BAT1: pack });
    expect(reading).toMatchObject({ percent: 90, reason: texts.charge_unreadable('BAT1') });
  });

  it('give an unknown charge on a machine without power supplies', async () => {
    expect(await readOnce({})).toMatchObject({ percent: null, charging: null, voltage_v: null });
  });
});

it('keep the last value of a gauge that returns errors for one minute only', async () => {
  await withDirectory(async (sys) => {
    const batteries = new SysfsBatteries(sys);
    await supply(sys, 'BAT0', { ...pack, capacity: '64', status: 'Charging' });
    expect(await batteries.read(0, signal)).toMatchObject({ percent: 64, charging: true });
    for (const file of ['capacity', 'status', 'type']) await unreadable(sys, `BAT0/${file}`);
    expect(await batteries.read(keep_ms - 1, signal)).toMatchObject({ percent: 64, charging: true });
    expect(await batteries.read(keep_ms, signal)).toMatchObject({ percent: null, charging: null });
    await supply(sys, 'BAT0', { ...pack, capacity: '63', status: 'Unknown' });
    expect(await batteries.read(keep_ms + 1, signal)).toMatchObject({ percent: 63, charging: null });
  });
});

it('drop a removed battery with the next reading', async () => {
  await withDirectory(async (sys) => {
    const batteries = new SysfsBatteries(sys);
    await supply(sys, 'BAT0', { ...pack, capacity: '64' });
    await supply(sys, 'BAT1', { ...pack, capacity: '20' });
    expect(await batteries.read(0, signal)).toMatchObject({ percent: 42 });
    await supply(sys, 'BAT1', { ...pack, present: '0' });
    expect(await batteries.read(1, signal)).toMatchObject({ percent: 64, reason: null });
  });
});

const untold = { status: null, energy_now: null, charge_now: null, charge_full: null, voltage_now: null };

it('never give a percentage outside those of the single batteries', () => {
  const gauge = record({
    percent: double({ min: 0, max: 100, noNaN: true }),
    full: double({ min: 1, max: 1e9, noNaN: true }),
  });
  const texts = (name: string, { percent, full }: { percent: number; full: number }) => ({
    name,
    capacity: percent.toFixed(3),
    energy_full: full.toFixed(0),
    ...untold,
  });
  forAll(gauge, gauge, (one, two) => {
    const read = [batteryOf(texts('a', one)), batteryOf(texts('b', two))];
    const [low = 0, high = 0] = read.map((each) => each.percent ?? -1).sort((a, b) => a - b);
    const { percent } = kitReading(read);
    expect(percent).toBeGreaterThanOrEqual(low - 0.1);
    expect(percent).toBeLessThanOrEqual(high + 0.1);
  });
});
