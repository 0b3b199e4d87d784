/**
 * The base map: the outline of the world and the operator's tiles. WebGL without a graphics card needs a whole processor: with these
 * beside it, every other page of the everyday run waited for minutes.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { channels } from '../../../src/contract/topics.ts';
import { samples } from '../../support/contract-samples.ts';
import { eventually } from '../../support/eventually.ts';
import { faultsOf, page_kit_id, type PageLab } from '../../support/service/page-lab.ts';
import { pageScene } from '../../support/service/page-scene.ts';
import { pmtilesArchive } from '../../support/service/pmtiles-archive.ts';
import { word } from '../../support/service/page-words.ts';
import { peerMissing } from '../../support/peers.ts';

/** One red pixel. */
const red_png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC',
  'base64',
);
const [type_at, zoom_max_at] = [99, 101];
const [mvt, png] = [1, 2];

/** Field 1 of a protocol buffer, as tag and value. */
const bytesField = (field: number, value: Buffer): Buffer =>
  Buffer.concat([Buffer.from([(field << 3) | 2]), varint(value.length), value]);
const intField = (field: number, value: number): Buffer =>
  Buffer.concat([Buffer.from([field << 3]), varint(value)]);
const varint = (value: number): Buffer =>
  value < 128
    ? Buffer.from([value])
    : Buffer.concat([Buffer.from([(value & 127) | 128]), varint(value >>> 7)]);

/** A vector tile that is water all over: move to the corner, three lines of 4,096 units, close. */
function waterTile(): Buffer {
  const commands = [9, 0, 0, 26, 8_192, 0, 0, 8_192, 8_191, 0, 15].map(varint);
  const feature = Buffer.concat([intField(3, 3), bytesField(4, Buffer.concat(commands))]);
  const layer = [
    intField(15, 2),
    bytesField(1, Buffer.from('water')),
    bytesField(2, feature),
    intField(5, 4_096),
  ];
  return bytesField(3, Buffer.concat(layer));
}

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'page-map-'));
});
afterAll(async () => rm(dir, { recursive: true }));

async function mapFile(name: string, tile: Buffer, type: number): Promise<string> {
  const archive = pmtilesArchive({ tile });
  archive.writeUInt8(type, type_at);
  archive.writeUInt8(0, zoom_max_at);
  const file = join(dir, name);
  await writeFile(file, archive);
  return file;
}

/** The colour of the base map near its lower right corner, where no mark stands; or so many pixels from the mark of the kit. */
async function colourOf(lab: PageLab, from_kit?: readonly [number, number]): Promise<readonly number[]> {
  const box = await lab.page.locator(from_kit ? '.mark.kit' : '#map').boundingBox();
  if (!box) throw new Error('there is no map');
  const { x, y, width, height } = box;
  const [left, top] = from_kit
    ? [x + width / 2 + from_kit[0], y + height / 2 + from_kit[1]]
    : [x + width - 60, y + height - 90];
  const clip = { x: left, y: top, width: 4, height: 4 };
  const picture = (await lab.page.screenshot({ clip })).toString('base64');
  return lab.page.evaluate(async (data) => {
    const bytes = Uint8Array.from(atob(data), (char) => char.codePointAt(0) ?? 0);
    const bitmap = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
    const context = new OffscreenCanvas(4, 4).getContext('2d');
    context?.drawImage(bitmap, 0, 0);
    return [...(context?.getImageData(1, 1, 1, 1).data ?? [])].slice(0, 3);
  }, picture);
}

const near = (colour: readonly number[], wanted: readonly number[]): boolean =>
  colour.every((value, i) => Math.abs(value - (wanted[i] ?? 0)) < 12);
const land_day = [0xf3, 0xf1, 0xe9];
const land_night = [0x17, 0x1d, 0x1b];
const water_day = [0xcf, 0xdf, 0xe8];
const water_night = [0x0f, 0x20, 0x29];

describe.skipIf(peerMissing('chromium-headless-shell'))('The base map', () => {
  const { show } = pageScene({ hasWebGl: true });

  const openMap = async (map_file?: string): Promise<PageLab> => {
    const lab = await show({ width_px: 1_280, ...(map_file !== undefined && { map_file }) });
    await lab.page.goto(`${lab.url}/#/k/${page_kit_id}/map`);
    await lab.page.locator('.map-tag.low').waitFor({ timeout: 60_000 });
    return lab;
  };

  it('is the outline of the world in the colours of the theme, without requests to others', async () => {
    const lab = await openMap();
    // Beyond the picture, whose edges are less than 1 km away.
    await lab.page.locator('.map text', { hasText: 'Wallisellen' }).waitFor();
    await lab.page.locator('.map .graticule text', { hasText: '8.540°' }).waitFor();
    const settings = `#/k/${page_kit_id}/settings`;
    expect(await lab.page.locator('a.map-tag.low').getAttribute('href')).toBe(settings);
    // South of Nice: the paper below the map has the colour of land, so that only the drawn map shows the sea.
    const { location } = samples['kitTelemetry'] as { readonly location: object };
    const at_sea = { ...samples['kitTelemetry'], location: { ...location, latitude: 43, longitude: 8 } };
    await lab.lab.publish(channels.telemetry, at_sea);
    const isDrawn = async (water: readonly number[], land: readonly number[]): Promise<boolean> =>
      near(await colourOf(lab, [-20, 20]), water) && near(await colourOf(lab, [-60, -130]), land);
    await eventually('sea and land are drawn', async () => isDrawn(water_day, land_day), 60_000);
    expect(await lab.page.locator('.map-tag.low').innerText()).toBe(word('map.worldOutline'));
    await lab.page.emulateMedia({ colorScheme: 'dark' });
    await eventually(
      'sea and land of the night are drawn',
      async () => isDrawn(water_night, land_night),
      60_000,
    );
    expect(await faultsOf(lab.page)).toEqual([]);
    expect([lab.complaints, lab.strangers]).toEqual([[], []]);
  }, 240_000);

  it('shows raster tiles of the operator, with their credit as text', async () => {
    const lab = await openMap(await mapFile('raster.pmtiles', red_png, png));
    await eventually('the tiles are drawn', async () => near(await colourOf(lab), [255, 0, 0]));
    expect(await lab.page.locator('.map-tag.low').innerText()).toBe('© OpenStreetMap');
    expect(await lab.page.locator('.graticule').count()).toBe(0);
    expect([lab.complaints, lab.strangers]).toEqual([[], []]);
  }, 240_000);

  it('shows a file of this device, which a person chose in the settings', async () => {
    const lab = await show({ width_px: 1_280 });
    await lab.page.goto(`${lab.url}/#/k/${page_kit_id}/settings`);
    const input = lab.page.locator('input[type="file"]');
    await input.setInputFiles({ name: 'x.pmtiles', mimeType: '', buffer: red_png });
    await lab.page.getByText(word('settings.mapRefused')).waitFor();
    await input.setInputFiles(await mapFile('own.pmtiles', red_png, png));
    await lab.page.getByText('own.pmtiles').waitFor();
    await lab.page.goto(`${lab.url}/#/k/${page_kit_id}/map`);
    await eventually('the tiles are drawn', async () => near(await colourOf(lab), [255, 0, 0]), 60_000);
    expect([lab.complaints, lab.strangers]).toEqual([[], []]);
  }, 240_000);

  it('shows vector tiles of the operator in the colours of the theme', async () => {
    const lab = await openMap(await mapFile('vector.pmtiles', waterTile(), mvt));
    await eventually('the water is drawn', async () => near(await colourOf(lab), water_day));
    expect([lab.complaints, lab.strangers]).toEqual([[], []]);
  }, 240_000);

  it('keeps a tap and the marks where they are on the plain map', async () => {
    const lab = await openMap();
    const places = async (): Promise<readonly (string | null)[]> =>
      lab.page
        .locator('.map .mark')
        .evaluateAll((marks) => marks.map((mark) => mark.getAttribute('transform')));
    const onBase = await places();
    await lab.page.goto(`${lab.url}/#/k/${page_kit_id}/settings`);
    await lab.page.locator('.setting .chip', { hasText: 'Simple' }).click();
    await lab.page.goto(`${lab.url}/#/k/${page_kit_id}/map`);
    await lab.page.locator('.map .mark').first().waitFor();
    expect(await lab.page.locator('.base').count()).toBe(0);
    const numbersOf = (all: readonly (string | null)[]): readonly number[] =>
      all.flatMap((text) => [...(text ?? '').matchAll(/-?[\d.]+/gu)].map(([digits]) => Number(digits)));
    const [a, b] = [numbersOf(onBase), numbersOf(await places())];
    expect(a.length).toBe(b.length);
    expect(Math.max(...a.map((value, i) => Math.abs(value - (b[i] ?? 0))))).toBeLessThan(3);
  }, 240_000);
});
