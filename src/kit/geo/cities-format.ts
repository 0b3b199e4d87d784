/**
 * How cities.bin lies, little endian: Uint32 magic and count; Uint32 start of each latitude band and the end of the last;
 * Int32 latitudes; Int32 longitudes, rising within a band; Uint32 starts of the names and the end of the last; Uint8
 * influences; the names in UTF-8 without separators.
 */

/** Made by pack-cities.ts. */
export const cities_file = new URL('cities.bin', import.meta.url);
export const magic = 0x31_43_43_4b;
/** Of one degree each, from the south pole. */
export const bands = 180;
/** Coordinates are kept in this part of a degree. */
export const coordinate_scale = 100_000;
export const influence_scale = 20;
const influence_max_km = 12;

/** How much farther a place of so many people may be and still give the name: near a city, its suburbs' hamlets do not. */
export function influence_km(population: number): number {
  return Math.min(influence_max_km, 0.15 * Math.sqrt(population / 1_000));
}
