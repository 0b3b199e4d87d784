/** What gpsd's reports say of the position, for every form of them that is known. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { readTpv, Receivers } from '../../../../drivers/location/location.ts';
import { forAll } from '../../../support/for-all.ts';

const tpv = (more: object) =>
  readTpv(JSON.stringify({ class: 'TPV', device: '/dev/a', mode: 3, lat: 59, lon: 18, ...more }));

it.each<[string, object, number | null]>([
  ['the height above the ellipsoid', { altHAE: 68.4, altMSL: 45, geoidSep: 23.4 }, 68.4],
  ['the sum where only the height above the sea is known', { altMSL: 45, geoidSep: 23.4 }, 68.4],
  ['the sum with the name of old releases', { alt: 45, geoidSep: 23.4 }, 68.4],
  ['nothing where the geoid is unknown', { alt: 45 }, null],
  ['nothing for a 2-D fix', { mode: 2, altHAE: 68.4 }, null],
  ['nothing for a 2-D fix that calls itself 3-D', { geoidSep: 23.4 }, null],
])('takes as altitude %s', (_what, more, altitude) => {
  expect(tpv(more)?.position?.altitude ?? null).toBe(altitude);
});

it.each<[string, object]>([
  ['mode 1', { mode: 1 }],
  ['mode 0', { mode: 0 }],
  ['no mode', { mode: undefined }],
  ['no latitude', { lat: undefined }],
  ['an impossible latitude', { lat: 91 }],
  ['0, 0', { lat: 0, lon: 0 }],
])('takes a report with %s as no position', (_what, more) => {
  expect(tpv(more)).toEqual({ device: '/dev/a', position: null });
});

it('reads the time as text, as seconds, and as unknown', () => {
  expect(tpv({ time: '2026-11-21T12:00:00.000Z' })?.position?.time_ms).toBe(Date.UTC(2026, 10, 21, 12));
  expect(tpv({ time: 1_000.5 })?.position?.time_ms).toBe(1_000_500);
  expect(tpv({ time: 'soon' })?.position?.time_ms).toBeNull();
  expect(tpv({})?.position?.time_ms).toBeNull();
});

it('ignores other reports and nonsense', () => {
  for (const line of ['', '{', 'null', '[]', '{"class":"SKY"}', '{"class":"TPV","lat":"59"}', '\u0000']) {
    expect(readTpv(line)).toBeUndefined();
  }
  forAll(fc.string(), fc.json(), (text, json) => {
    expect(readTpv(text)).toBeUndefined();
    expect(readTpv(json)).toBeUndefined();
  });
});

it('prefers a receiver that sends, has a fix, and a height if possible', () => {
  const receivers = new Receivers(10_000, undefined, 0);
  const position = { latitude: 1, longitude: 2, altitude: null, time_ms: null };
  expect(receivers.state(10_000)).toBe('waiting');
  expect(receivers.state(10_001)).toBe('mute');
  receivers.note({ device: 'a', position: null }, 11_000);
  expect(receivers.state(11_000)).toBe('no fix');
  receivers.note({ device: 'b', position }, 12_000);
  expect(receivers.best(12_000)?.device).toBe('b');
  receivers.note({ device: 'c', position: { ...position, altitude: 5 } }, 13_000);
  expect(receivers.best(13_500)).toMatchObject({ device: 'c', age_ms: 500 });
  receivers.note({ device: 'b', position }, 23_000);
  expect(receivers.best(23_001)?.device).toBe('b');
  expect(receivers.state(33_001)).toBe('mute');
});

it('prefers a receiver on time to one whose fixes arrive late, by the time that both report', () => {
  const receivers = new Receivers(10_000, undefined, 0);
  const position = { latitude: 1, longitude: 2, altitude: 5, time_ms: 1_000_000 };
  const at = (time_ms: number | null) => ({ ...position, time_ms });
  receivers.note({ device: 'late', position: at(955_000) }, 20_000);
  receivers.note({ device: 'good', position: { ...at(1_000_000), altitude: null } }, 20_000);
  expect(receivers.best(20_500)?.device).toBe('good');
  // One of a past epoch (week roll-over) says nothing about the others; neither does one without a date.
  receivers.note({ device: 'late', position: at(1_000_000 - 619_315_200_000) }, 21_000);
  receivers.note({ device: 'undated', position: at(null) }, 21_000);
  expect(receivers.best(21_000)?.device).toBe('late');
  receivers.note({ device: 'late', position: null }, 22_000);
  receivers.note({ device: 'good', position: null }, 22_000);
  expect(receivers.best(22_000)?.device).toBe('undated');
});

it('takes a fix that is repeated with its time as old, and not one of a kit that stands still', () => {
  const receivers = new Receivers(10_000, undefined, 0);
  const position = { latitude: 1, longitude: 2, altitude: 5, time_ms: 1_000_000 };
  const note = (now_ms: number, more: object = {}, device = 'a') =>
    receivers.note({ device, position: { ...position, ...more } }, now_ms);
  note(0);
  note(9_000);
  expect(receivers.best(9_000)?.age_ms).toBe(9_000);
  // gpsd has two reports of most moments; one that is unplugged in between is mute and not frozen.
  expect([receivers.state(18_000), receivers.state(19_001)]).toEqual(['fix', 'mute']);
  note(11_000);
  expect([receivers.best(11_000), receivers.state(11_000)]).toEqual([undefined, 'frozen']);
  expect(receivers.state(22_000)).toBe('mute');
  // u-blox receivers hold the place of a kit that stands still; one that counts no time moves all the same.
  note(30_000, { time_ms: 1_030_000 });
  expect(receivers.state(30_000)).toBe('fix');
  note(45_000, { time_ms: 1_030_000, latitude: 1.1 });
  expect(receivers.best(45_000)?.age_ms).toBe(0);
  note(56_000, { time_ms: 1_030_000, latitude: 1.1 });
  note(56_000, { time_ms: 1_056_000, altitude: null }, 'b');
  expect(receivers.best(56_000)?.device).toBe('b');
});

it('reads only the configured receiver, and a limited number of them', () => {
  const wanted = new Receivers(10_000, 'b', 0);
  expect(wanted.note({ device: 'a', position: null }, 0)).toBe(false);
  expect(wanted.note({ device: 'b', position: null }, 0)).toBe(true);
  const all = new Receivers(10_000, undefined, 0);
  const taken = Array.from({ length: 100 }, (_, index) =>
    all.note({ device: `${index}`, position: null }, 0),
  );
  expect(taken.filter(Boolean)).toHaveLength(16);
});
