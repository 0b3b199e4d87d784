/**
 * The fleet as a layer of a GIS. Some readers take one kind of geometry in a layer and none that is null (qgis#32747, geopf-extensions-openlayers
 * PR 251), one type for each property (qgis#51911), and look for the id among the properties (leaflet-realtime#58).
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { channels } from '../../../../src/contract/topics.ts';
import { createdAsset } from '../../../../src/cloud/api/resources.ts';
import { assetLayer } from '../../../../src/cloud/api/layer-resources.ts';
import { asset_id, kit_id, samples } from '../../../support/contract-samples.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';

const other_kit = '11111111-1111-4111-8111-111111111111';
const camera_id = '2b671a64-40d5-591e-99b0-da01ff1f3342';
const unplaced_id = '3b671a64-40d5-591e-99b0-da01ff1f3343';
let lab: ServiceLab;
let other_key: string;
let truck_id: string;

beforeAll(async () => {
  lab = await startServiceLab(kit_id);
  other_key = await lab.giveKey({ kits: [other_kit] });
  const announce = async (id: string, about: object): Promise<void> =>
    lab.publish(channels.asset(id), {
      ...samples['announcement'],
      id,
      parent_id: null,
      lat: null,
      lon: null,
      ...about,
    });
  await announce(asset_id, { type: 'drone', name: 'Drone <&>' });
  await lab.publish(channels.feed(asset_id, 'gps'), { lat: -17, lon: 180, alt_m: 512.5, heading: 90 });
  await announce(camera_id, { type: 'camera', name: 'Gate', lat: 47.1, lon: 8.5 });
  await announce(unplaced_id, { type: 'radio', name: 'Mast' });
  await lab.publish(channels.state, samples['kitState'] ?? {}, { kit: other_kit });
  const headers = { 'x-api-key': lab.key, 'content-type': 'application/json' };
  const body = JSON.stringify({ name: 'Truck', type: 'vehicle' });
  const path = `${lab.url}/api/kits/${kit_id}/assets`;
  truck_id = createdAsset.parse(await (await fetch(path, { method: 'POST', headers, body })).json()).id;
  await fetch(`${path}/${truck_id}/location`, { method: 'POST', headers, body: '{"lat":46.5,"lon":7.5}' });
  await fetch(`${lab.url}/api/kits/${kit_id}`, { method: 'PATCH', headers, body: '{"tags":["alps"]}' });
});
afterAll(async () => lab.stop());

const ask = async (query = '', headers: Record<string, string> = {}, key = lab.key): Promise<Response> =>
  fetch(`${lab.url}/api/assets.geojson${query}`, { headers: { 'x-api-key': key, ...headers } });
const featuresOf = async (query = '', key = lab.key) =>
  assetLayer.parse(await (await ask(query, {}, key)).json()).features;

it('has a point for each asset with a position, each with the same properties', async () => {
  const response = await ask();
  expect(response.headers.get('content-type')).toBe('application/geo+json');
  const features = await featuresOf();
  expect(features.map(({ id, geometry }) => [id, geometry])).toEqual([
    [camera_id, { type: 'Point', coordinates: [8.5, 47.1] }],
    [asset_id, { type: 'Point', coordinates: [180, -17, 512.5] }],
    [truck_id, { type: 'Point', coordinates: [7.5, 46.5] }],
  ]);
  const typesOf = (properties: object): unknown =>
    Object.entries(properties).map(([name, value]) => [name, value === null ? 'null' : typeof value]);
  expect(typesOf(features[1]?.properties ?? {})).toEqual([
    ['id', 'string'],
    ['kit_id', 'string'],
    ['kit_name', 'string'],
    ['name', 'string'],
    ['type', 'string'],
    ['status', 'string'],
    ['last_seen_at', 'string'],
    ['positioned_at', 'string'],
    ['heading', 'number'],
  ]);
  for (const { properties } of features)
    expect(Object.keys(properties)).toEqual(Object.keys(features[0]?.properties ?? {}));
});

it('is filtered by kit, tag and type, and has nothing of kits that the key lacks', async () => {
  const namesOf = async (query: string, key?: string): Promise<readonly string[]> =>
    (await featuresOf(query, key)).map(({ properties }) => properties.name);
  expect(await namesOf('?types=drone,vehicle')).toEqual(['Drone <&>', 'Truck']);
  expect(await namesOf('?tags=alps&types=camera')).toEqual(['Gate']);
  expect(await namesOf('?tags=coast')).toEqual([]);
  expect(await namesOf(`?kits=${kit_id}`)).toHaveLength(3);
  expect(await namesOf('', other_key)).toEqual([]);
  expect((await ask(`?kits=${kit_id}`, {}, other_key)).status).toBe(404);
  for (const bad of ['?kits=x', '?type=drone', '?kits=']) expect((await ask(bad)).status).toBe(400);
});

it('is the same until something moves, compressed and for clients that ask again', async () => {
  const tag = (await ask()).headers.get('etag') ?? '';
  expect((await ask('', { 'if-none-match': tag })).status).toBe(304);
  await lab.publish(channels.feed(asset_id, 'gps'), { lat: -17.1, lon: 180, alt_m: null });
  const moved = await ask('', { 'if-none-match': tag, 'accept-encoding': 'gzip' });
  expect([moved.status, moved.headers.get('content-encoding')]).toEqual([200, 'gzip']);
});
