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

/** As an earth viewer asks: first without a password, then with one, for which it asked a person. */
const askKml = async (query = '', password?: string): Promise<Response> => {
  const coded = Buffer.from(`anybody:${password}`).toString('base64');
  const headers = password === undefined ? {} : { authorization: `Basic ${coded}` };
  return fetch(`${lab.url}/api/assets.kml${query}`, { headers });
};

it('is KML for earth viewers, with the key as the password of HTTP Basic', async () => {
  await lab.publish(channels.asset(camera_id), {
    ...samples['announcement'],
    id: camera_id,
    parent_id: null,
    type: 'camera',
    name: 'Gate \uFFFE "1" <&>',
    status: 'offline',
    lat: 1e-7,
    lon: 8.5,
  });
  const refused = await askKml();
  expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([
    401,
    'Basic realm="API key as password", charset="UTF-8"',
  ]);
  for (const wrong of ['', 'kc_x', `${lab.key}x`]) expect((await askKml('', wrong)).status).toBe(401);
  const answer = await askKml('?types=camera', lab.key);
  expect(answer.headers.get('content-type')).toBe('application/vnd.google-earth.kml+xml');
  // In the order of the schema: name, style, data, geometry.
  expect(await answer.text()).toMatch(
    new RegExp(
      `^<\\?xml version="1.0" encoding="UTF-8"\\?>\n<kml xmlns="http://www.opengis.net/kml/2.2"><Document><name>kit-connector</name>
.*<Folder><name>${kit_id}</name>
<Placemark id="a-${camera_id}"><name>Gate \uFFFD &quot;1&quot; &lt;&amp;&gt;</name><styleUrl>#offline</styleUrl><ExtendedData><Data name="type"><value>camera</value></Data>.*</ExtendedData><Point><coordinates>8.5,0.0000001</coordinates></Point></Placemark>
</Folder>
</Document></kml>\n$`,
      'su',
    ),
  );
  expect(await (await askKml('', other_key)).text()).not.toContain('Folder');
  // No other path takes a password.
  const { status } = await fetch(`${lab.url}/api/assets.geojson`, {
    headers: { authorization: `Basic ${Buffer.from(`x:${lab.key}`).toString('base64')}` },
  });
  expect(status).toBe(401);
});

it('is a network link that is refreshed, by the address that the client used', async () => {
  const link = await askKml('?types=drone,vehicle&refresh_s=10', lab.key);
  const text = await link.text();
  expect(text).toContain(
    `<Link><href>${lab.url}/api/assets.kml?types=drone%2Cvehicle</href><refreshMode>onInterval</refreshMode><refreshInterval>10</refreshInterval></Link>`,
  );
  const [, href = ''] = /<href>([^<]+)</u.exec(text) ?? [];
  expect(await (await fetch(href, { headers: { 'x-api-key': lab.key } })).text()).toContain(
    'Drone &lt;&amp;&gt;',
  );
  for (const bad of ['4', 'x', '1e9']) expect((await askKml(`?refresh_s=${bad}`, lab.key)).status).toBe(400);
});
