/** Which position of the kit counts, how old it is, and what survives a restart. */
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { assetId } from '../../../../../src/contract/identity.ts';
import { channels } from '../../../../../src/contract/topics.ts';
import type { Fix } from '../../../../../src/toolkit/driver/driver.ts';
import {
  cached_before_manual_ms,
  KitLocation,
  LastFix,
  Locations,
  renew_every_ms,
  write_every_ms,
} from '../../../../../src/kit/hub/kit/location.ts';
import type { Stamp } from '../../../../../src/platform/clock.ts';
import { recordingLog } from '../../../../support/recording-log.ts';
import { testDirectory } from '../../../../support/test-directory.ts';
import { kit_id } from '../../../../support/kit/hub-lab.ts';
import { testHub } from '../../../../support/kit/test-hub.ts';
import { useFakeTime } from '../../../../support/fake-time.ts';
import { drone } from '../../../../fakes/scripted-driver.ts';
import { texts } from '../../../../../src/kit/hub/texts.ts';

useFakeTime();

const noon = Date.UTC(2026, 10, 21, 12);
const at = (mono_ms: number, more: Partial<Stamp> = {}): Stamp => ({
  mono_ms,
  time_ms: noon + mono_ms,
  synced: true,
  ...more,
});
const fix = (source: Fix['source'], latitude: number, more: Partial<Fix> = {}): Fix => ({
  latitude,
  longitude: 18,
  altitude: null,
  source,
  age_ms: 0,
  ...more,
});

it('prefers a fresh satellite fix, then a fresh modem, then the last satellite fix, then the manual position', () => {
  const locations = new Locations();
  locations.note('site', fix('manual', 1), at(0));
  expect(locations.at(0)).toMatchObject({ latitude: 1, source: 'manual', stale: false, age_ms: null });
  locations.note('gps', fix('satellite', 2), at(0));
  locations.note('modem', fix('cellular', 3), at(20_000));
  expect(locations.at(30_000)).toMatchObject({ latitude: 2, source: 'satellite', stale: false });
  expect(locations.at(30_001)).toMatchObject({ latitude: 3, source: 'cellular', stale: false });
  expect(locations.at(50_001)).toMatchObject({ latitude: 2, source: 'satellite_cached', stale: true });
  const day_later = 20_000 + cached_before_manual_ms + 1;
  expect(locations.at(day_later)).toMatchObject({ latitude: 1, source: 'manual', stale: false });
});

it('reports a receiver that sends outdated fixes until it is silent or current again', () => {
  const locations = new Locations();
  const late_ms = (mono_ms: number) => locations.at(mono_ms)?.late_ms;
  locations.note('gps', fix('satellite', 2), at(0));
  expect(late_ms(0)).toBe(0);
  locations.note('gps', fix('satellite', 2, { time_ms: noon + 60_000 - 45_000 }), at(60_000));
  expect(locations.at(60_000)).toMatchObject({ source: 'satellite_cached', stale: true, late_ms: 45_000 });
  expect(late_ms(90_000)).toBe(45_000);
  expect(late_ms(90_001)).toBe(0);
  locations.note('gps', fix('satellite', 2, { time_ms: noon + 100_000 }), at(100_000));
  expect(late_ms(100_000)).toBe(0);
});

it('takes the age of fixes without a time from the first one with a time, of the same receiver only', () => {
  const locations = new Locations();
  locations.note('gps', fix('satellite', 2), at(0));
  expect(locations.at(0)).toMatchObject({ source: 'satellite', stale: false });
  locations.note('dish', fix('satellite', 4, { time_ms: noon + 200 - 60_000 }), at(200));
  expect(locations.at(200)).toMatchObject({ latitude: 2, source: 'satellite', stale: false });
  locations.note('gps', fix('satellite', 2, { time_ms: noon + 400 - 45_000 }), at(400));
  expect(locations.at(400)).toMatchObject({ latitude: 2, source: 'satellite_cached', stale: true });
  expect(locations.at(400)?.age_ms).toBe(45_000);
});

it('prefers a pinned manual position to every source', () => {
  const locations = new Locations();
  locations.note('gps', fix('satellite', 2), at(0));
  locations.note('site', fix('manual', 1, { pinned: true }), at(0));
  expect(locations.at(0)).toMatchObject({ latitude: 1, source: 'manual' });
});

it('keeps the last satellite fix and the configured position when the receiver has lost its fix', () => {
  const locations = new Locations();
  locations.note('gps', fix('manual', 1), at(0));
  locations.note('gps', fix('satellite', 2), at(0));
  locations.note('gps', null, at(1_000));
  expect(locations.at(1_000)).toMatchObject({ latitude: 2, source: 'satellite_cached', stale: false });
  expect(locations.at(31_000)).toMatchObject({ latitude: 2, source: 'satellite_cached', stale: true });
  const never_had = new Locations();
  never_had.note('gps', fix('manual', 1), at(0));
  never_had.note('gps', null, at(0));
  expect(never_had.at(0)).toMatchObject({ latitude: 1, source: 'manual' });
  never_had.note('modem', fix('cellular', 3), at(0));
  never_had.note('modem', null, at(0));
  expect(never_had.at(0)).toMatchObject({ latitude: 1 });
});

it.each<[string, Partial<Stamp>, number | null, number]>([
  ['45 s old by the receiver, clock synchronised', {}, noon - 45_000, 45_000],
  ['45 s old by the receiver, clock not synchronised', { synced: false }, noon - 45_000, 200],
  ['from the future', {}, noon + 45_000, 200],
  ['19.6 years back after a week roll-over', {}, noon - 1_024 * 7 * 86_400_000, 200],
  ['read while the system clock is in 1970', { time_ms: 5_000, synced: false }, noon, 200],
  ['without a time', {}, null, 200],
])('knows the age of a fix that is %s', (_what, stamp, time_ms, age_ms) => {
  const locations = new Locations();
  locations.note('gps', fix('satellite', 2, { age_ms: 200, time_ms }), at(0, stamp));
  expect(locations.at(0)).toMatchObject({ age_ms, stale: age_ms > 30_000 });
});

it('does not let a negative age make a fix younger than it is', () => {
  const locations = new Locations();
  locations.note('gps', fix('satellite', 2, { age_ms: -60_000 }), at(0));
  expect(locations.at(30_001)).toMatchObject({ stale: true });
});

it.each<[string, Partial<Stamp>, number | null, object]>([
  ['with its age', {}, noon - 600_000, { age_ms: 600_000, stale: true }],
  ['with its age, though it is fresh', {}, noon - 5_000, { age_ms: 5_000, stale: false }],
  [
    'without an age when the clock is not synchronised',
    { synced: false },
    noon,
    { age_ms: null, stale: true },
  ],
  ['without an age when it was kept without a clock', {}, null, { age_ms: null, stale: true }],
  ['without an age when it seems to be of tomorrow', {}, noon + 86_400_000, { age_ms: null, stale: true }],
])('restores the last satellite fix of an earlier run %s', (_what, stamp, time_ms, shown) => {
  const locations = new Locations();
  locations.restore({ latitude: 2, longitude: 18, altitude: 68.4, time_ms }, at(0, stamp));
  expect(locations.at(0)).toMatchObject({
    latitude: 2,
    altitude: 68.4,
    source: 'satellite_cached',
    ...shown,
  });
});

it('writes the fix at most once a minute, and then only when it moved or grew old', async () => {
  const dir = await testDirectory();
  const file = join(dir, 'deep', 'last-fix.json');
  const faults: unknown[] = [];
  const last = new LastFix(file, (error) => faults.push(error));
  expect(last.read()).toBeUndefined();
  const keep = (latitude: number, mono_ms: number) =>
    last.keep({ latitude, longitude: 18, altitude: null, time_ms: noon + mono_ms }, mono_ms);
  const kept = (): unknown => JSON.parse(readFileSync(file, 'utf8'));
  keep(10, 0);
  keep(20, write_every_ms - 1);
  expect(kept()).toMatchObject({ latitude: 10, time_ms: noon });
  keep(20, write_every_ms);
  expect(kept()).toMatchObject({ latitude: 20 });
  keep(20.0001, write_every_ms + renew_every_ms - 1);
  expect(kept()).toMatchObject({ latitude: 20 });
  keep(20.0001, write_every_ms + renew_every_ms);
  expect(kept()).toMatchObject({ latitude: 20.0001 });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(new LastFix(file, () => undefined).read()).toMatchObject({ latitude: 20.0001 });
  writeFileSync(file, '{"latitude": 91');
  expect(new LastFix(file, () => undefined).read()).toBeUndefined();
  expect(faults).toEqual([]);
});

it('logs once that the fix cannot be saved', async () => {
  const dir = await testDirectory();
  const faults: unknown[] = [];
  mkdirSync(join(dir, 'taken.new'));
  const last = new LastFix(join(dir, 'taken'), (error) => faults.push(error));
  for (let minute = 0; minute < 5; minute += 1) {
    last.keep({ latitude: minute, longitude: 0, altitude: null, time_ms: null }, minute * write_every_ms);
  }
  expect(faults).toHaveLength(1);
});

it('looks up the city again only after 500 m, and reports why a location is not fresh', async () => {
  const dir = await testDirectory();
  const asked: number[] = [];
  const clock = { boot_id: 'x', stamp: () => at(performance.now()) };
  const where = new KitLocation({
    file: join(dir, 'last'),
    clock,
    cityOf: ({ latitude }) => (asked.push(latitude), 'Town'),
    log: recordingLog(),
  });
  expect(where.now()).toBeUndefined();
  expect(where.view()).toEqual({
    age_s: null,
    driver: null,
    reason: texts.no_position,
  });
  for (const latitude of [10, 10.001, 10.004, 10.005, 10.0051]) {
    where.note('gps', fix('satellite', latitude));
    expect(where.now()).toMatchObject({ latitude, kit_location: 'Town' });
  }
  expect(asked).toEqual([10, 10.005]);
  expect(where.view()).toEqual({ age_s: 0, driver: 'gps', reason: null });
  where.note('gps', null);
  expect(where.view().reason).toMatch(/using the last one/u);
  where.keep();
  const next = new KitLocation({ file: join(dir, 'last'), clock, cityOf: () => null, log: recordingLog() });
  expect(next.now()).toMatchObject({ latitude: 10.0051, source: 'satellite_cached', kit_location: null });
  expect(next.view().driver).toBeNull();
  expect(next.view().reason).toMatch(/earlier run/u);
});

it('reports positions without a city when the index cannot be read, and logs it once', () => {
  const log = recordingLog();
  const where = new KitLocation({
    file: '/nowhere/last',
    clock: { boot_id: 'x', stamp: () => at(0) },
    cityOf: () => {
      throw new Error('cut off');
    },
    log,
  });
  for (const latitude of [1, 2, 3]) {
    where.note('gps', fix('cellular', latitude));
    expect(where.now()).toMatchObject({ latitude, kit_location: null });
  }
  expect(log.at('warn')).toHaveLength(1);
});

it('publishes a new location, its movement and its change to stale, also on the gateway', async () => {
  const dir = await testDirectory();
  const lab = testHub({ state_dir: dir });
  const host = await lab.hostOf();
  host.announce(drone('gateway:1', { type: 'gateway', protocol: 'gateway' }));
  host.reportLocation(fix('satellite', 10, { altitude: 68.4 }));
  await vi.advanceTimersByTimeAsync(1_000);
  expect(lab.outbox.on(channels.telemetry)).toMatchObject([
    { location: { latitude: 10, source: 'satellite', stale: false } },
  ]);
  const gateway = lab.outbox.on(channels.asset(assetId(kit_id, 'gateway:1'))).at(-1);
  expect(gateway).toMatchObject({ lat: 10, lon: 18, alt_m: 68.4 });
  lab.outbox.clear();
  host.reportLocation(fix('satellite', 10.00005, { altitude: 70 }));
  await vi.advanceTimersByTimeAsync(6_000);
  expect(lab.outbox.on(channels.telemetry)).toEqual([]);
  host.reportLocation(fix('satellite', 10.0002, { altitude: 70 }));
  await vi.advanceTimersByTimeAsync(5_000);
  expect(lab.outbox.on(channels.telemetry)).toMatchObject([
    { location: { latitude: 10.0002, stale: false } },
  ]);
  await vi.advanceTimersByTimeAsync(32_000);
  expect(lab.outbox.on(channels.telemetry).slice(1)).toMatchObject([
    { location: { source: 'satellite_cached', stale: true } },
  ]);
});
