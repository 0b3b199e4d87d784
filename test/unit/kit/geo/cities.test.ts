/** The offline names of cities: edges of the globe, any position, and that the index is the one the tool makes. */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { InvariantBroken } from '../../../../src/platform/errors.ts';
import { cities_file } from '../../../../src/kit/geo/cities-format.ts';
import { cityAt, findCity, openIndex, reach_km } from '../../../../src/kit/geo/cities.ts';
import { distance_m } from '../../../../src/toolkit/device/distance.ts';
import { allCities, packCities } from '../../../../src/tools/pack-cities.ts';

it.each<[string, number, number, string | null]>([
  ['the centre of a capital', 59.3293, 18.0686, 'Stockholm'],
  ['a landmark between a city and its suburbs', 48.8584, 2.2945, 'Paris'],
  ['a name that is not ASCII', 47.3769, 8.5417, 'Zürich'],
  ['the southern and western hemisphere', -23.55, -46.63, 'São Paulo'],
  ['a place just west of the date line', -16.8, 179.99, 'Labasa'],
  ['a place just east of the date line', -16.8, -179.99, 'Labasa'],
  ['the north of a capital with a hostel that is listed as a town', -0.19, -78.49, 'Quito'],
  ['the north pole', 90, 0, null],
  ['the south pole', -90, 137, null],
  ['the ocean', 0, 0, null],
  ['the middle of the Pacific', -40, -140, null],
])('names %s', (_what, latitude, longitude, name) => {
  expect(cityAt({ latitude, longitude })).toBe(name);
});

it('answers the same a turn around the globe later', { tags: 'long' }, () => {
  const longitude = fc.double({ min: -180, max: 179, noNaN: true });
  fc.assert(
    fc.property(fc.double({ min: -90, max: 90, noNaN: true }), longitude, (latitude, east) => {
      const at = { latitude, longitude: Math.round(east) };
      expect(cityAt({ latitude, longitude: at.longitude + 360 })).toBe(cityAt(at));
    }),
    { numRuns: 200 },
  );
});

it('names a place within its reach if and only if the whole list has one there', { tags: 'long' }, () => {
  const all = allCities().filter(({ population }) => population >= 5_000);
  const pack = openIndex(packCities(all));
  fc.assert(
    fc.property(
      fc.integer({ min: -90, max: 90 }),
      fc.integer({ min: -180, max: 180 }),
      (latitude, longitude) => {
        const near = all.filter(({ featureCode, loc: { coordinates } }) => {
          const there = { latitude: coordinates[1], longitude: coordinates[0] };
          const isPart = /^PPL(?:X|H|Q|W|CH|L|F|A5|S)$/u.test(featureCode);
          return !isPart && distance_m({ latitude, longitude }, there) <= reach_km * 1_000 - 2;
        });
        const name = findCity(pack, { latitude, longitude });
        const right: readonly (string | null)[] = near.length > 0 ? near.map((city) => city.name) : [null];
        expect(right).toContain(name);
      },
    ),
    { numRuns: 40 },
  );
});

it('is the index that the tool makes from the installed package', () => {
  expect(packCities(allCities()).equals(readFileSync(cities_file))).toBe(true);
});

it('rejects a damaged index', () => {
  const bytes = readFileSync(cities_file);
  expect(() => openIndex(Buffer.from('nonsense'))).toThrow(InvariantBroken);
  expect(() => openIndex(bytes.subarray(0, 100_000))).toThrow(InvariantBroken);
});

it('measures one degree of the equator and half the globe', () => {
  expect(distance_m({ latitude: 0, longitude: 179.5 }, { latitude: 0, longitude: -179.5 })).toBeCloseTo(
    111_195,
    -1,
  );
  expect(distance_m({ latitude: 90, longitude: 0 }, { latitude: -90, longitude: 77 })).toBeCloseTo(
    20_015_115,
    -2,
  );
});
