/** The map of the operator: what it shows, and its file by ranges. */
import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FetchSource, PMTiles } from 'pmtiles';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { kit_id } from '../../../support/contract-samples.ts';
import { pmtilesArchive } from '../../../support/service/pmtiles-archive.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';
import { makeDirectory } from '../../../support/temporary.ts';

const origin = 'https://app.example.com';
const path = '/api/map/archive.pmtiles';
const archive = pmtilesArchive({ filler_bytes: 2_000_000 });

let dir: string;
let map_file: string;
let lab: ServiceLab;
beforeEach(async () => {
  dir = await makeDirectory();
  map_file = join(dir, 'area.pmtiles');
  await writeFile(map_file, archive);
  lab = await startServiceLab(kit_id, { map_file, cors_origins: [origin] });
});
afterEach(async () => {
  await lab.stop();
  await rm(dir, { recursive: true });
});

const ask = async (url: string, headers: Record<string, string> = {}, method = 'GET') =>
  fetch(lab.url + url, { method, headers: { 'x-api-key': lab.key, ...headers } });
const bytesOf = async (response: Response) => Buffer.from(await response.arrayBuffer());

/** As an operator installs another one. */
async function replace(bytes: Buffer): Promise<void> {
  await writeFile(`${map_file}.new`, bytes);
  await rename(`${map_file}.new`, map_file);
}

describe('GET /api/map', () => {
  it('returns bounds, zooms and attribution of the installed file', async () => {
    const response = await ask('/api/map');
    expect(await response.json()).toEqual({
      archive: {
        url: path,
        etag: (await ask(path, {}, 'HEAD')).headers.get('etag'),
        bytes: archive.length,
        tile_type: 'mvt',
        tile_compression: 'gzip',
        min_zoom: 0,
        max_zoom: 14,
        bounds: [8, 47, 9, 48],
        center: { lat: 47.5, lon: 8.5, zoom: 10 },
        name: 'Area',
        attribution: '© OpenStreetMap',
        vector_layers: ['water'],
      },
    });
  });

  it('returns null where no map is configured', async () => {
    const other = await startServiceLab(kit_id);
    const headers = { 'x-api-key': other.key };
    onTestFinished(async () => other.stop());
    expect(await (await fetch(`${other.url}/api/map`, { headers })).json()).toEqual({ archive: null });
    expect((await fetch(other.url + path, { headers })).status).toBe(404);
  });

  it.each([
    ['a file that is no archive', Buffer.from('<html>'), 'not a PMTiles archive'],
    [
      'an archive of version 2',
      Buffer.concat([Buffer.from('PMTiles\u0002'), Buffer.alloc(200)]),
      'version 2',
    ],
    ['an archive that is cut off', archive.subarray(0, 140), 'cut off'],
    ['damaged metadata', damaged(archive), 'damaged'],
    ['metadata without end', pmtilesArchive({ metadata: { x: 'x'.repeat(5_000_000) } }), 'damaged'],
    [
      '4 kB of metadata that stand for two million values',
      pmtilesArchive({ metadata: { vector_layers: Array.from({ length: 2_000_000 }, () => 1) } }),
      'more than 50000 values',
    ],
    ['metadata 100,000 deep', pmtilesArchive({ metadata: '['.repeat(100_000) }), 'nested deeper'],
  ])('names the fault of %s', async (_, bytes, reason) => {
    await replace(bytes);
    const body = (await (await ask('/api/map')).json()) as { archive: unknown; fault: string };
    expect(body.archive).toBeNull();
    expect(body.fault).toContain(reason);
  });

  it('returns texts of the archive without what no reader can see', async () => {
    const name = 'Area\u001b[2J \u202eaerA';
    await replace(pmtilesArchive({ metadata: { name, attribution: name, vector_layers: [{ id: name }] } }));
    const clean = 'Area [2J aerA';
    expect(await (await ask('/api/map')).json()).toMatchObject({
      archive: { name: clean, attribution: clean, vector_layers: [clean] },
    });
  });

  it('reports a missing file until it is there', async () => {
    await rename(map_file, `${map_file}.away`);
    expect(await (await ask('/api/map')).json()).toEqual({
      archive: null,
      fault: 'no such file or directory',
    });
    expect((await ask(path)).status).toBe(503);
    await rename(`${map_file}.away`, map_file);
    expect(await (await ask('/api/map')).json()).toMatchObject({ archive: { max_zoom: 14 } });
  });
});

describe('the file of the map', () => {
  it.each([
    ['bytes=0-126', 0, 127],
    ['bytes=1000000-1299999', 1_000_000, 1_300_000],
    [`bytes=${archive.length - 5}-`, archive.length - 5, archive.length],
    ['bytes=-5', archive.length - 5, archive.length],
    ['bytes=100-99999999999', 100, archive.length],
    ['bytes=-99999999999', 0, archive.length],
  ])('answers %s with that part', async (range, first, end) => {
    const response = await ask(path, { range });
    expect(response.status).toBe(206);
    expect(response.headers.get('content-range')).toBe(`bytes ${first}-${end - 1}/${archive.length}`);
    expect(response.headers.get('content-length')).toBe(String(end - first));
    expect((await bytesOf(response)).equals(archive.subarray(first, end))).toBe(true);
  });

  it.each(['bytes=5-2', 'lines=1-2', 'bytes=0-1,5-9', 'bytes=-', 'bytes=a-b'])(
    'answers %s with the whole file',
    async (range) => {
      const response = await ask(path, { range });
      expect(response.status).toBe(200);
      expect((await bytesOf(response)).equals(archive)).toBe(true);
    },
  );

  it.each([`bytes=${archive.length}-`, 'bytes=-0'])('refuses %s with the size of the file', async (range) => {
    const response = await ask(path, { range });
    expect([response.status, response.headers.get('content-range')]).toEqual([
      416,
      `bytes */${archive.length}`,
    ]);
    expect(await response.json()).toMatchObject({ type: '/problems/range-not-satisfiable' });
  });

  it('answers HEAD with the size and no body', async () => {
    const { status, headers } = await ask(path, {}, 'HEAD');
    expect([status, headers.get('content-length'), headers.get('accept-ranges')]).toEqual([
      200,
      String(archive.length),
      'bytes',
    ]);
  });

  it('answers 304 while the file is the same, and sends no part of another version', async () => {
    const tag = (await ask(path, {}, 'HEAD')).headers.get('etag') ?? '';
    expect(tag).toMatch(/^"/u);
    const headers = { range: 'bytes=0-9', 'if-range': tag };
    expect((await ask(path, { 'if-none-match': tag })).status).toBe(304);
    expect((await bytesOf(await ask(path, headers))).length).toBe(10);
    const other = pmtilesArchive({ metadata: { name: 'Other' } });
    await replace(other);
    expect((await ask(path, { 'if-none-match': tag })).status).toBe(200);
    const whole = await ask(path, headers);
    expect([whole.status, (await bytesOf(whole)).equals(other)]).toEqual([200, true]);
    expect(await (await ask('/api/map')).json()).toMatchObject({ archive: { name: 'Other' } });
  });

  it('needs a key with the scope read', async () => {
    expect((await fetch(lab.url + path)).status).toBe(401);
    const key = await lab.giveKey({ scopes: ['commands'] });
    expect((await ask(path, { 'x-api-key': key })).status).toBe(403);
  });

  it('lets pages of configured origins read ranges', async () => {
    const preflight = await fetch(lab.url + path, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'GET', 'access-control-request-headers': 'range' },
    });
    expect(preflight.headers.get('access-control-allow-headers')).toContain('Range');
    const { headers } = await ask(path, { origin, range: 'bytes=0-9' });
    expect(headers.get('access-control-allow-origin')).toBe(origin);
    expect(headers.get('access-control-expose-headers')).toContain('Content-Range');
    expect(headers.get('cache-control')).toBe('private, max-age=600');
  });

  it('has a separate limit for the many parts of one screen', async () => {
    const parts = Array.from({ length: 150 }, async (_, n) =>
      ask(path, { range: `bytes=${n * 10}-${n * 10 + 9}` }),
    );
    const statuses = new Set((await Promise.all(parts)).map(({ status }) => status));
    expect([...statuses]).toEqual([206]);
  });

  it('can be read by the library of PMTiles', async () => {
    const headers = new Headers({ 'X-API-Key': lab.key });
    const tiles = new PMTiles(new FetchSource(lab.url + path, headers));
    expect(await tiles.getHeader()).toMatchObject({
      minZoom: 0,
      maxZoom: 14,
      minLon: 8,
      maxLat: 48,
      tileType: 1,
    });
    expect(await tiles.getMetadata()).toMatchObject({ attribution: '© OpenStreetMap' });
    const tile = await tiles.getZxy(0, 0, 0);
    expect(Buffer.from(tile?.data ?? new ArrayBuffer()).toString()).toBe('a tile');
    expect(await tiles.getZxy(1, 0, 0)).toBeUndefined();
  });
});

/** The metadata begin behind the root directory. */
function damaged(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  copy.fill(0xff, Number(bytes.readBigUInt64LE(24)), Number(bytes.readBigUInt64LE(24)) + 8);
  return copy;
}
