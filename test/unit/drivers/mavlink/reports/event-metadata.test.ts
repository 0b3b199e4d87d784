/** PX4 events in words, from the files that the vehicle serves: packed by liblzma, written as libevents describes. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { EventMetadata } from '../../../../../drivers/mavlink/reports/metadata-fetch.ts';
import { eventId, type VehicleEvent } from '../../../../../drivers/mavlink/reports/px4-events.ts';
import { blank } from '../../../../../drivers/mavlink/wire/messages.ts';
import { unpackXz } from '../../../../../drivers/mavlink/wire/xz.ts';
import { texts } from '../../../../../drivers/mavlink/vehicles/texts.ts';
import { VehicleFiles } from '../../../../fakes/vehicle-files.ts';
import { eventually } from '../../../../support/eventually.ts';
import { withDrone } from '../mavlink-lab.ts';

const folder = join(import.meta.dirname, '../../../../fixtures/px4-metadata');
const packed = (name: string): Uint8Array => readFileSync(join(folder, name));
const general = packed('component_general.json.xz');
const events = packed('all_events.json.xz');
const json = (bytes: Uint8Array): unknown => JSON.parse(new TextDecoder().decode(bytes));
const bytes_max = 1_000_000;

const eventOf = (name: string, bytes: readonly number[]): VehicleEvent => ({
  ...blank('EVENT'),
  id: eventId(name),
  log_levels: 0x22,
  arguments: [...bytes, ...Array.from({ length: 40 - bytes.length }, () => 0)],
});
const floats = (...values: readonly number[]): readonly number[] => [
  ...new Uint8Array(Float32Array.from(values).buffer),
];

describe('A packed file', () => {
  it('is unpacked as liblzma packed it, with either checksum', () => {
    expect(json(unpackXz(general, bytes_max))).toMatchObject({ version: 1 });
    expect(json(unpackXz(events, bytes_max))).toMatchObject({ version: 1 });
  });

  it.each([
    ['cut', events.subarray(0, 900), bytes_max],
    ['not packed', new TextEncoder().encode('{"version":1}'), bytes_max],
    ['too long', events, 10_000],
    ['damaged', events.map((byte, at) => (at > 40 && at < 80 ? byte ^ 0xff : byte)), bytes_max],
  ])('that is %s is refused or no JSON', (_, bytes, size_max) => {
    expect(() => json(unpackXz(bytes, size_max))).toThrow(/xz|JSON/u);
  });
});

describe('The metadata of events', () => {
  const metadata = new EventMetadata(json(unpackXz(events, bytes_max)));

  it.each([
    [
      'enumerations',
      'commander_failsafe_enter',
      [0, 0, 4, 5, 6, 4],
      'Failsafe activated due to critical battery level, triggering RTL',
    ],
    [
      'an unknown entry',
      'commander_failsafe_enter',
      [0, 0, 4, 5, 99, 2],
      'Failsafe activated due to GCS connection loss, triggering 99',
    ],
    [
      'numbers, units, escapes and tags',
      'battery_low',
      floats(10.61, 40.2),
      'Battery at 10.6V, 40 m above {home}, see BAT_LOW_THR',
    ],
    ['bits', 'sensor_failover', [5, 0], 'Sensors failed: No data, Timeout'],
  ])('fills %s', (_, name, bytes, text) => {
    expect(metadata.textOf(eventOf(name, bytes))).toBe(text);
  });

  it('names checks, which are no messages, and nothing that it does not have', () => {
    const check = eventOf('check_estimator_new', [1, 0, 0, 0, 24, 2]);
    expect([metadata.textOf(check), metadata.isShown(check)]).toEqual(['Estimator 2 is not ready', false]);
    expect(metadata.textOf(eventOf('something_else', []))).toBeUndefined();
  });
});

describe.concurrent('A PX4 that serves its metadata', () => {
  const paths = {
    '/etc/extras/component_general.json.xz': general,
    '/etc/extras/all_events.json.xz': events,
  };

  it('has its events in words, also when answers are lost, and its texts not twice', async () => {
    await withDrone({ autopilot: 'px4' }, async (lab, drone) => {
      const files = new VehicleFiles(paths);
      files.lose_every = 9;
      drone.files = files;
      drone.reportEvent({ ...eventOf('something_else', []), log_levels: 0x66 });
      // While the files are read.
      drone.reportEvent(eventOf('commander_failsafe_enter', [0, 0, 4, 5, 6, 4]));
      const text = 'Failsafe activated due to critical battery level, triggering RTL';
      const { messages } = await lab.sees('messages', (data) => JSON.stringify(data).includes(text));
      drone.sendText('Failsafe activated\t', 2);
      drone.sendText('Landed', 6);
      await lab.sees('messages', (data) => JSON.stringify(data).includes('Landed'));
      expect(messages).toMatchObject([{ text, severity: 'critical', count: 1 }]);
      const newest = lab.outbox.drafts.findLast(({ channel }) => channel === lab.feed('messages'));
      expect(newest?.data).toMatchObject({ messages: [{ text: 'Landed' }, { text }] });
    });
  });

  it('keeps its numbers where a file is missing', async () => {
    await withDrone({ autopilot: 'px4' }, async (lab, drone) => {
      drone.files = new VehicleFiles({ '/etc/extras/component_general.json.xz': general });
      drone.reportEvent({ ...eventOf('something_else', []), log_levels: 0x66 });
      await eventually(
        'the fault is logged',
        () => lab.log.at('info').includes(texts.metadata_missing),
        10_000,
      );
    });
  });
});
