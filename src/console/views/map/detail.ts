/** Coasts and borders of Natural Earth 1:10m and the towns of the kit's own index: fetched after the coarse outline is shown. */
import { pageFile } from '../parts/lazy.ts';

const units_per_degree = 500;
/** How `cities.bin` lies: src/kit/geo/cities-format.ts. */
const cities = { bands: 180, degree: 100_000 };

type Ring = (readonly [lon: number, lat: number])[];

/** As GeoJSON. */
export interface Detail {
  readonly land: { readonly type: 'MultiPolygon'; readonly coordinates: Ring[][] };
  readonly borders: { readonly type: 'MultiLineString'; readonly coordinates: Ring[] };
  readonly towns: {
    readonly type: 'FeatureCollection';
    readonly features: {
      type: 'Feature';
      geometry: { type: 'Point'; coordinates: [number, number] };
      properties: { name: string; size: number };
    }[];
  };
}

let detail: Promise<Detail> | undefined;

/** Rejects where the link to the service is lost; the next call tries again. */
export async function loadDetail(): Promise<Detail> {
  detail ??= Promise.all([bytesOf('world.bin'), bytesOf('cities.bin')]).then(([world, places]) => ({
    ...readWorld(world),
    towns: readTowns(places),
  }));
  try {
    return await detail;
  } catch (error) {
    detail = undefined;
    throw error;
  }
}

async function bytesOf(name: string) {
  const response = await fetch(pageFile(name));
  if (!response.ok) throw new Error(`${name}: ${response.status}`);
  return response.arrayBuffer();
}

/** The reverse of src/tools/pack-world.ts. */
function readWorld(buffer: ArrayBuffer): Pick<Detail, 'land' | 'borders'> {
  const bytes = new Uint8Array(buffer);
  let at = 0;
  const count = () => {
    let [n, shift] = [0, 0];
    for (;;) {
      const byte = bytes[at] ?? 0;
      at += 1;
      n |= (byte & 127) << shift;
      if (byte < 128) return n;
      shift += 7;
    }
  };
  const step = () => {
    const n = count();
    return n & 1 ? -(n + 1) / 2 : n / 2;
  };
  const line = (): Ring => {
    let [x, y] = [0, 0];
    return Array.from({ length: count() }, () => {
      x += step();
      y += step();
      return [x / units_per_degree, y / units_per_degree] as const;
    });
  };
  const list = <T>(read: () => T): T[] => Array.from({ length: count() }, read);
  const land = list(() => list(line));
  return {
    land: { type: 'MultiPolygon', coordinates: land },
    borders: { type: 'MultiLineString', coordinates: list(line) },
  };
}

function readTowns(buffer: ArrayBuffer): Detail['towns'] {
  const n = new DataView(buffer).getUint32(4, true);
  let at = 8 + 4 * (cities.bands + 1);
  const lats = new Int32Array(buffer, at, n);
  at += 4 * n;
  const lons = new Int32Array(buffer, at, n);
  at += 4 * n;
  const starts = new Uint32Array(buffer, at, n + 1);
  at += 4 * (n + 1);
  const sizes = new Uint8Array(buffer, at, n);
  const names = new Uint8Array(buffer, at + n);
  const text = new TextDecoder();
  const features = Array.from(sizes, (size, i) => ({
    type: 'Feature' as const,
    geometry: {
      type: 'Point' as const,
      coordinates: [(lons[i] ?? 0) / cities.degree, (lats[i] ?? 0) / cities.degree] as [number, number],
    },
    properties: { name: text.decode(names.subarray(starts[i], starts[i + 1])), size },
  }));
  return { type: 'FeatureCollection', features };
}
