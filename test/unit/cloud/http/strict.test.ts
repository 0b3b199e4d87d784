/**
 * A strict client, made of the OpenAPI document alone: each operation is asked, and each answer has a status, a type and headers that the
 * document names, and a body with the fields of its schema and no other.
 */
import { createHash, randomBytes } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import type { FileAnswer } from '../../../../src/contract/files.ts';
import { channels, upTopic } from '../../../../src/contract/topics.ts';
import { relayed } from '../../../../src/cloud/video/relayed-assets.ts';
import { VideoRelay } from '../../../../src/cloud/video/video-relay.ts';
import { openSqlite } from '../../../../src/cloud/sql/sqlite.ts';
import { sqlStore } from '../../../../src/cloud/store/sql-store.ts';
import { samplePicture } from '../../../../src/toolkit/device/pictures/sample-picture.ts';
import { asset_id, kit_id, samples } from '../../../support/contract-samples.ts';
import { eventually } from '../../../support/eventually.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { pmtilesArchive } from '../../../support/service/pmtiles-archive.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';
import { makeDirectory } from '../../../support/temporary.ts';

const named = z.record(z.string(), z.unknown());
const operation = z.looseObject({
  operationId: z.string(),
  responses: z.record(
    z.string(),
    z.looseObject({
      headers: named.optional(),
      content: z.record(z.string(), z.looseObject({ schema: z.unknown() })).optional(),
    }),
  ),
});
const apiDocument = z.looseObject({
  paths: z.record(z.string(), z.record(z.string(), operation)),
  components: z.looseObject({ schemas: named }),
});

const file_id = '4c7e2a90-6b1d-4f3a-8e52-9d0c1b2a3f48';
const content = randomBytes(1_000);
const hour_ms = 3_600_000;

let lab: ServiceLab;
let document: z.output<typeof apiDocument>;
let dir: string;
const ajv = new Ajv2020({ strict: false, allErrors: true });
formats.default(ajv);
const permits: FileAnswer[] = [];
const asked = new Set<string>();
/** Where answers differ from the document. */
const faults: unknown[] = [];

beforeAll(async () => {
  dir = await makeDirectory();
  const settings = { dir, url: 'https://kits.example.com', bytes_max: 1e6, days: { default: 90 } };
  const map_file = join(dir, 'area.pmtiles');
  await writeFile(map_file, pmtilesArchive());
  const relay: VideoRelay = new VideoRelay({
    async send(_, { id, offer }) {
      const answer = Buffer.from(JSON.stringify({ answer: 'v=0\r\n' }));
      if (offer !== null) relay.receive(upTopic(kit_id, channels.whep(id)), answer);
    },
    pass: undefined,
    log: recordingLog(),
  });
  lab = await startServiceLab(kit_id, {
    hasHistory: true,
    webhooks: { timeout_ms: 1_000, disable_after_ms: hour_ms, allow: [], allow_http: false },
    files: { settings, send: async (_kit, _file, answer) => void permits.push(answer) },
    map_file,
    pictures: async () => ({ jpeg: samplePicture(), taken_ms: Date.now() }),
    video: relay,
    store: relayed(sqlStore(openSqlite(':memory:'))),
  });
  document = apiDocument.parse(await (await fetch(`${lab.url}/openapi.json`)).json());
  ajv.addSchema({ $id: 'api', components: closed({ schemas: document.components.schemas }) });
  await lab.publish(channels.state, samples['kitState'] ?? {});
  await lab.publish(channels.telemetry, samples['kitTelemetry'] ?? {});
  await lab.publish(channels.asset(asset_id), {
    ...samples['announcement'],
    whep_url: 'http://192.168.1.1:8889/cam/whep',
  });
  await lab.publish(channels.commands(asset_id), samples['commandList'] ?? {});
  await lab.publish(channels.feed(asset_id, 'gps'), samples['droneGps'] ?? {});
  await lab.publish(channels.event(asset_id, 'alarm_picture'), samples['onvifAlarmPicture'] ?? {});
  await lab.publish(channels.event(asset_id, 'motion'), {
    detected: true,
    timestamp: new Date().toISOString(),
  });
  await lab.publish(channels.drops, samples['dropReport'] ?? {}, { skipped: 3 });
});
afterAll(async () => {
  await lab.stop();
  await rm(dir, { recursive: true });
});

const schemaObject = z.looseObject({
  $ref: z.string().optional(),
  allOf: z.array(z.unknown()).optional(),
  properties: named.optional(),
  required: z.array(z.string()).optional(),
});

/** Of objects whose fields are named no others are allowed: what the document leaves open for later versions is closed here. */
function closed(value: unknown): object {
  return JSON.parse(JSON.stringify(inner(value)).replaceAll('"#/', '"api#/')) as object;
}

function inner(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inner);
  const read = schemaObject.safeParse(value).data;
  if (!read) return value;
  const { properties, required = [], ...rest } = read.allOf ? joined(read) : read;
  const others = Object.entries(rest).map(([key, of]) => [key, key === 'example' ? of : inner(of)]);
  const own = properties && { properties: inner(properties), required };
  return { ...(properties && { additionalProperties: false }), ...Object.fromEntries(others), ...own };
}

/** Several schemas of one object as one; those of anything else stay. */
function joined(whole: z.output<typeof schemaObject>): z.output<typeof schemaObject> {
  const parts = (whole.allOf ?? []).map((part): z.output<typeof schemaObject> => {
    const read = schemaObject.parse(part);
    const name = read.$ref?.split('/').at(-1);
    const of = name === undefined ? read : schemaObject.parse(document.components.schemas[name]);
    return of.allOf ? joined(of) : of;
  });
  if (!parts.every(({ properties }) => properties)) return whole;
  return {
    type: 'object',
    properties: Object.assign({}, ...parts.map(({ properties }) => properties)) as Record<string, unknown>,
    required: parts.flatMap(({ required = [] }) => required),
  };
}

interface Question {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly body?: unknown;
  /** In place of a JSON body. */
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly status?: number;
  readonly key?: string;
}

/** Asks as the document says, and compares the answer with it. */
async function ask(operationId: string, question: Question = {}) {
  const { path = {}, query = '', body, text, status = 200, key = lab.key } = question;
  const { place, method, responses } = operationOf(operationId);
  const ids: Readonly<Record<string, string>> = { kit_id, asset_id, file_id, ...path };
  const address = place.replace(/\{(\w+)\}/gu, (_, name: string) => ids[name] ?? name) + query;
  const response = await fetch(lab.url + address, {
    method: method.toUpperCase(),
    headers: { 'x-api-key': key, 'content-type': 'application/json', ...question.headers },
    body: text ?? (body === undefined ? null : JSON.stringify(body)),
  });
  asked.add(operationId);
  const { headers } = response;
  const answered = await response.text();
  const [type = ''] = (headers.get('content-type') ?? '').split(';');
  const json: unknown = /[/+]json$/u.test(type) ? JSON.parse(answered) : answered;
  const found =
    response.status === status
      ? faultsOf(responses[String(status)], { headers, type, json })
      : [`${response.status} in place of ${status}: ${answered}`];
  faults.push(...found.map((fault) => [`${operationId} ${query}`, fault]));
  return { json, headers };
}

function operationOf(operationId: string) {
  for (const [place, methods] of Object.entries(document.paths))
    for (const [method, { operationId: id, responses }] of Object.entries(methods))
      if (id === operationId) return { place, method, responses };
  throw new Error(`the document has no operation ${operationId}`);
}

interface Answer {
  readonly headers: Headers;
  readonly type: string;
  readonly json: unknown;
}

function faultsOf(
  described: z.output<typeof operation>['responses'][string] | undefined,
  { headers, type, json }: Answer,
): readonly unknown[] {
  if (!described) return ['no such status'];
  const absent = Object.keys(described.headers ?? {}).filter((name) => !headers.has(name));
  if (json === '') return absent;
  const { content = {} } = described;
  const { schema } = content[type] ?? content['*/*'] ?? {};
  if (schema === undefined) return [`no type ${type}`];
  const isValid = ajv.validate(closed(schema), json);
  return [
    ...absent,
    ...(isValid ? [] : (ajv.errors ?? [])).map(({ instancePath, params }) => [instancePath, params]),
  ];
}

const idOf = (answer: { readonly json: unknown }): string =>
  z.looseObject({ id: z.string() }).parse(answer.json).id;
const missing = '00000000-0000-4000-8000-000000000009';

it('gets from reads of kits and assets what the document says', async () => {
  for (const each of [
    'listKits',
    'getKit',
    'getKitTelemetry',
    'listLinks',
    'getKitLocation',
    'getKitBattery',
  ])
    await ask(each);
  for (const each of ['getGateway', 'listClients', 'getSpeedtest', 'getQueue', 'listAssets', 'getAsset'])
    await ask(each);
  for (const each of ['getAssetFeeds', 'listCommands', 'listTasks', 'listAssetTasks', 'getMap'])
    await ask(each);
  await ask('getLink', { path: { link_name: 'eth3' } });
  await ask('getLink', { path: { link_name: 'none' }, status: 404 });
  await ask('changeKit', { body: { name: 'Kit 7', tags: ['alps'] } });
  await ask('removeKit', { status: 409 });
  await ask('getAssetLayer');
  await ask('getAssetLayer', { query: '?tags=alps&types=drone' });
  await ask('getAssetLayer', { query: `?kits=${missing}`, status: 404 });
  await ask('getAssetLayer', { query: '?kit=1', status: 400 });
  await ask('getAssetKml', { query: '?refresh_s=10' });
  await ask('getAssetKml', { query: '?refresh_s=1', status: 400 });
  await ask('getAssetKml', { status: 401, key: 'kc_x' });
  await ask('getAlarmPicture', { status: 200 });
  expect(faults.splice(0)).toEqual([]);
});

it('gets from changes of assets and commands what the document says', async () => {
  const made = await ask('createAsset', { body: { name: 'Truck', type: 'vehicle' }, status: 201 });
  const path = { asset_id: idOf(made) };
  await ask('changeAsset', { path, body: { metadata: { a: 1 } } });
  await ask('changeAsset', { path, body: {}, headers: { 'if-match': '"none"' }, status: 412 });
  const fix = { lat: 46.2, lon: 6.5, alt_m: 400, bearing: 90, speed_mps: 3 };
  await ask('pushLocation', { path, body: fix, status: 204 });
  await ask('pushLocation', { path, body: { lat: 91, lon: 0 }, status: 422 });
  await ask('pushLocations', { body: { locations: [{ ...path, ...fix }] }, status: 204 });
  await ask('getAssetLayer');
  await ask('getAsset', { path });
  await ask('deleteAsset', { path, status: 204 });
  await ask('deleteAsset', { status: 409 });
  const command = { command_name: 'goto_waypoint' };
  const task = {
    task_id: idOf(await ask('sendCommand', { path: command, body: { payload: { lat: 1 } }, status: 202 })),
  };
  await ask('sendCommand', { path: command, body: { payload: {} }, status: 422 });
  await ask('getTask', { path: task });
  await ask('cancelTask', { path: task, status: 202 });
  await ask('listTasks');
  expect(faults.splice(0)).toEqual([]);
});

it('gets of alarms what the document says', async () => {
  const list = await ask('listAlarms');
  const motion = z
    .looseObject({ alarms: z.array(z.looseObject({ id: z.string(), what: z.string() })) })
    .parse(list.json)
    .alarms.find(({ what }) => what === 'motion');
  const path = { alarm_id: motion?.id ?? '' };
  const tag = (await ask('getAlarm', { path })).headers.get('etag') ?? '';
  const body = {
    acknowledged: true,
    muted_until: new Date(Date.now() + hour_ms).toISOString(),
    note: 'seen',
  };
  await ask('changeAlarm', { path, body, headers: { 'if-match': tag } });
  await ask('changeAlarm', { path, body, headers: { 'if-match': tag }, status: 412 });
  await ask('changeAlarm', { path, body: { acknowledged: 1 }, status: 422 });
  await ask('getAlarm', { path: { alarm_id: missing }, status: 404 });
  await lab.publish(channels.event(asset_id, 'motion'), {
    detected: false,
    timestamp: new Date().toISOString(),
  });
  for (const query of [
    '',
    '?state=open,acknowledged,muted,closed',
    '?limit=1',
    '?severity=info',
    '?what=motion',
  ]) {
    await ask('listAlarms', { query });
    await ask('listKitAlarms', { query });
  }
  await ask('listAlarms', { query: '?stat=open', status: 400 });
  expect(faults.splice(0)).toEqual([]);
});

it('gets of keys what the document says', async () => {
  const body = { label: 'reader', scopes: ['read'], kits: [kit_id], expires_at: '2099-01-01T00:00:00Z' };
  const made = await ask('createKey', { body, status: 201 });
  const path = { key_id: idOf(made) };
  const { key } = z.looseObject({ key: z.string() }).parse(made.json);
  await ask('listKits', { key });
  await ask('listKeys');
  await ask('getKey', { path });
  await ask('changeKey', { path, body: { label: 'other' } });
  await ask('rotateKey', { path });
  await ask('getKey', { path });
  await ask('createKey', { body: { ...body, scopes: ['all'] }, status: 422 });
  await ask('listKeys', { key, status: 403 });
  await ask('changeAlarm', { key, path: { alarm_id: missing }, body: { note: 'x' }, status: 403 });
  await ask('revokeKey', { path, status: 204 });
  await ask('getKey', { path, status: 404 });
  await ask('listKits', { key: 'wrong', status: 401 });
  await ask('openSession', { body: { api_key: lab.key }, status: 204 });
  await ask('getSession');
  await ask('closeSession', { headers: { 'x-kit-page': '1' }, status: 204 });
  expect(faults.splice(0)).toEqual([]);
});

it('gets of files what the document says', async () => {
  const report = {
    ...samples['fileReport'],
    bytes: content.length,
    sha256: createHash('sha256').update(content).digest('hex'),
  };
  await lab.publish(channels.file(file_id), { ...report, id: file_id });
  await lab.publish(channels.file(missing), { ...report, id: missing });
  await ask('getFile');
  await ask('getFileContent', { status: 409 });
  await ask('requestFile', { status: 202 });
  await lab.publish(channels.file(file_id), { ...report, id: file_id, state: 'requesting' });
  const uploads = (): FileAnswer[] => permits.filter(({ want }) => want === 'upload');
  await eventually('the permit', () => uploads().length > 0);
  const permit = z.looseObject({ url: z.string(), token: z.string() }).parse(uploads()[0]);
  await fetch(lab.url + new URL(permit.url).pathname, {
    method: 'PATCH',
    headers: {
      authorization: `Bearer ${permit.token}`,
      'tus-resumable': '1.0.0',
      'upload-offset': '0',
      'content-type': 'application/offset+octet-stream',
    },
    body: content,
  });
  for (const query of ['', '?limit=1', '?states=stored', '?kinds=still,flight_log'])
    await ask('listFiles', { query });
  await ask('listFiles', { query: '?states=lost', status: 400 });
  await ask('getFile');
  await ask('requestFile', { status: 409 });
  await ask('getFileContent');
  await ask('getFileContent', { headers: { range: 'bytes=0-9' }, status: 206 });
  await ask('getFileContent', { headers: { range: 'bytes=5000-' }, status: 416 });
  await ask('deleteFile', { status: 204 });
  await ask('getFile', { status: 404 });
  expect(faults.splice(0)).toEqual([]);
});

it('gets of pictures, the map and video what the document says', async () => {
  await ask('getSnapshot');
  await ask('getSnapshot', { query: '?max_age_s=-1', status: 400 });
  await ask('getSnapshot', { path: { asset_id: missing }, status: 404 });
  await ask('getMap');
  await ask('getMapArchive');
  await ask('getMapArchive', { headers: { range: 'bytes=0-9' }, status: 206 });
  await ask('getMapArchive', { headers: { range: 'bytes=99999999-' }, status: 416 });
  const offer = { text: 'v=0\r\n', headers: { 'content-type': 'application/sdp' } };
  const { headers } = await ask('watchVideo', { ...offer, status: 201 });
  const viewer_id = headers.get('location')?.split('/').at(-1) ?? '';
  await ask('leaveVideo', { path: { viewer_id }, status: 204 });
  await ask('watchVideo', { body: {}, status: 415 });
  await ask('watchVideo', { ...offer, path: { asset_id: missing }, status: 404 });
  expect(faults.splice(0)).toEqual([]);
});

it('gets of webhooks what the document says', async () => {
  const body = { label: 'ops', url: 'https://hooks.example.com/x', types: ['alarm'], kits: [kit_id] };
  const path = { webhook_id: idOf(await ask('createWebhook', { body, status: 201 })) };
  await ask('listWebhooks');
  const tag = (await ask('getWebhook', { path })).headers.get('etag') ?? '';
  await ask('changeWebhook', { path, body: { severity_min: 'critical' }, headers: { 'if-match': tag } });
  await ask('changeWebhook', { path, body: { label: 'x' }, headers: { 'if-match': tag }, status: 412 });
  await ask('createWebhook', { body: { ...body, types: ['all'] }, status: 422 });
  for (const each of ['testWebhook', 'rotateWebhookSecret', 'listDeadLetters', 'replayDeadLetters'])
    await ask(each, { path });
  await ask('purgeDeadLetters', { path });
  await ask('deleteWebhook', { path, status: 204 });
  expect(faults.splice(0)).toEqual([]);
});

it('gets of the history what the document says', async () => {
  await ask('changeKit', { body: { time_zone: 'Europe/Zurich' } });
  for (const query of ['', '?order=arrival', '?limit=1', '?class=feed&order=asc'])
    await ask('listHistory', { query });
  for (const query of ['', '?order=arrival&limit=1', '?severity=info']) {
    await ask('listEvents', { query });
    await ask('listFleetEvents', { query });
  }
  await ask('listHistory', { query: '?from=yesterday', status: 400 });
  await ask('listAssetHistory');
  await ask('listAssetHistory', { path: { asset_id: missing }, status: 404 });
  for (const shape of ['columns', 'rows', 'csv'])
    await ask('getSeries', { query: `?select=${asset_id}:gps.lat&bucket_s=60&tz=kit&shape=${shape}` });
  for (const format of ['geojson', 'gpx', 'kml', 'csv'])
    await ask('getTrack', { query: `?format=${format}` });
  for (const format of ['ndjson', 'csv', 'flat_csv'])
    await ask('exportHistory', { query: `?format=${format}` });
  await ask('getCompleteness');
  await ask('setRetention', { status: 422, body: { days: -1 } });
  const { json } = await ask('getRetention');
  const { source: _, ...kept } = z.looseObject({ source: z.string() }).parse(json);
  await ask('setRetention', { body: kept, key: await lab.giveKey({ kits: '*' }) });
  const before = new Date(Date.now() - hour_ms).toISOString();
  await ask('eraseHistory', { query: `?before=${before}`, status: 204 });
  await ask('eraseAssetHistory', { query: `?before=${before}`, status: 204 });
  await ask('listErasures');
  expect(faults.splice(0)).toEqual([]);
});

it('knows every operation of the document', () => {
  const all = Object.values(document.paths).flatMap((methods) =>
    Object.values(methods).map(({ operationId }) => operationId),
  );
  expect(all.filter((each) => !asked.has(each))).toEqual([]);
});
