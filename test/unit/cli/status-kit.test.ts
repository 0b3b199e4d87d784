/** Location, battery and files in `kit-connector status`, each with the reason when it is unknown. */
import { expect, it } from 'vitest';
import { filesLines, kitLines } from '../../../src/cli/status/view.ts';
import type { StatusReport } from '../../../src/kit/local/api.ts';
import { statusOf } from '../kit/local/fake-daemon.ts';
import { texts } from '../../../src/cli/texts.ts';

const lines = (news: Partial<StatusReport>) => kitLines(statusOf(news), (_colour, text) => text);
const power = (facts: StatusReport['drivers'][number]['facts'], reason: string | null = null) => ({
  name: 'power',
  driver: 'power',
  state: reason === null ? 'up' : 'down',
  since: '2026-11-21T10:00:00.000Z',
  reason,
  facts,
});
const location = {
  latitude: 59.3293,
  longitude: 18.0686,
  altitude: 68.4,
  source: 'satellite',
  stale: false,
  kit_location: 'Stockholm',
};

it('shows a fresh location with its age, source and city, and the battery', () => {
  const kit = { location, battery: 87, battery_charging: true };
  expect(lines({ kit, location: { age_s: 2, driver: 'location', reason: null } })).toEqual([
    'location 59.32930, 18.06860  68 m above the ellipsoid  Stockholm  satellite  2s old  driver location',
    'battery  87 %, charging',
  ]);
});

it('shows a stale location with the reason and an unknown age', () => {
  const kit = {
    location: { ...location, altitude: null, source: 'satellite_cached', stale: true, kit_location: null },
  };
  const [text] = lines({ kit, location: { age_s: null, driver: null, reason: 'no fix yet' } });
  expect(text).toBe(
    'location 59.32930, 18.06860  no city near  satellite_cached, stale  age unknown  no fix yet',
  );
});

it('gives a manual position no age', () => {
  const kit = { location: { ...location, source: 'manual' } };
  const [text] = lines({ kit, location: { age_s: null, driver: 'site', reason: 'from the configuration' } });
  expect(text).toMatch(/manual {2}driver site {2}from the configuration$/u);
});

it.each<[string, Partial<StatusReport>, string]>([
  ['no driver', { drivers: [] }, texts.no_power_driver],
  ['its own reason', { drivers: [power({ reason: 'the UPS is stale' })] }, 'the UPS is stale'],
  ['that it is down', { drivers: [power({}, 'upsd is gone')] }, 'upsd is gone'],
  ['no battery', { drivers: [power({})] }, texts.no_battery],
])('tells why the battery is unknown: %s', (_what, news, reason) => {
  expect(lines({ ...news, kit: {} })[1]).toBe(`battery  unknown  ${reason}`);
});

it('shows why the location is unknown', () => {
  expect(lines({ kit: {}, location: { age_s: null, driver: null, reason: 'no receiver' } })[0]).toBe(
    'location unknown  no receiver',
  );
});

it('shows what became of files for the cloud, and why an upload fails', () => {
  const plain = (_colour: unknown, text: string): string => text;
  const files = { accepted: 5, uploaded: 2, dropped: { evicted: 1 }, bytes_max: 5e8, sent_bytes: 0 };
  const kept = { files: 2, bytes: 1_500_000, ordered: 0 };
  expect(filesLines({ ...files, kept, fault: 'HTTP 503' }, plain)).toEqual([
    'files    accepted 5 = uploaded 2 + kept 2 (1.5 MB) + dropped 1  HTTP 503',
  ]);
  expect(filesLines(undefined, plain)).toEqual([]);
});
