/** One example for each resource and request of the API, as the OpenAPI document shows it. A test reads each with its schema. */
import { fileList, fileResource, type FileResource } from './file-resources.ts';
import { alarm, alarmList, type AlarmResource, changeAlarm } from './alarm-resources.ts';
import type { z } from 'zod';
import { gatewayResource, linkResource, locationResource, speedtestResource } from './kit-resources.ts';
import {
  completeness,
  erasureList,
  eventPage,
  historyPage,
  historyRetention,
  seriesAnswer,
  setRetention,
  track,
} from './history-resources.ts';
import { changeKey, createdKey, createKey, key, keyList } from './key-resources.ts';
import { assetLayer } from './layer-resources.ts';
import { map_archive_path, mapResource } from './map-resources.ts';
import { titles } from './problem.ts';
import {
  changeAsset,
  changeKit,
  createAsset,
  openSession,
  pushLocation,
  pushLocations,
  sendCommand,
} from './requests.ts';
import {
  asset,
  assetDetails,
  assetFeeds,
  assetList,
  battery,
  clientList,
  commandListResource,
  createdAsset,
  kit,
  kitList,
  kitTelemetrySnapshot,
  linkList,
  type Problem,
  queue,
  session,
  task,
  taskList,
} from './resources.ts';
import {
  changeWebhook,
  createdWebhook,
  createWebhook,
  deadLetterList,
  purged,
  replayDead,
  replayed,
  tested,
  webhook,
  webhookBodies,
  webhookList,
  type WebhookResource,
  webhookSecret,
  type WebhookType,
} from './webhook-resources.ts';

const time = '2026-11-21T10:00:00.000Z';
export const example_ids = {
  kit_id: '0f8c1a52-6d1e-4b7a-9c3d-1f2e3d4c5b6a',
  asset_id: 'b3d0c1de-55c1-5d0e-8a44-0c6f8a2f5a11',
  task_id: '7d3b2c10-55aa-4c1e-8f00-0a1b2c3d4e5f',
  command_name: 'goto_waypoint',
  link_name: 'satellite',
  key_id: '0123456789ab',
  webhook_id: '2f6b8a10-3c4d-4e5f-8a90-b1c2d3e4f506',
  file_id: '4c7e2a90-6b1d-4f3a-8e52-9d0c1b2a3f48',
  alarm_id: '6a1d0c3e-8b52-4f77-9d10-2e4f6a8b0c1d',
} as const;
const { kit_id, asset_id, task_id } = example_ids;
const partner_id = '5e0b8d7c-41f3-4f0e-9b52-6f1a3c0d9e21';

const secret = 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=';
const message_id = 'msg_0aZ3kQ9xR1tY7uI5oP2sD4fG6hJ';

const aFile: FileResource = {
  id: example_ids.file_id,
  kit_id,
  kind: 'flight_log',
  asset_id,
  name: 'flight 2026-11-21 10-00.bin',
  content_type: 'application/octet-stream',
  at: '2026-11-21T10:00:00.000Z',
  bytes: 48_213_004,
  sha256: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  state: 'at_kit',
  received_bytes: 1_048_576,
  ordered: true,
};

const aWebhook: WebhookResource = {
  id: '2f6b8a10-3c4d-4e5f-8a90-b1c2d3e4f506',
  label: 'dispatch centre',
  url: 'https://app.example.com/hooks/kits',
  types: ['alarm', 'kit.offline'],
  kits: [kit_id],
  assets: '*',
  severity_min: 'warning',
  status: 'enabled',
  last_delivered_at: time,
  created_at: time,
  counts: { accepted: 120, delivered: 117, waiting: 2, dead: 1, purged: 0, missed: 0 },
};

const anAlarm: AlarmResource = {
  id: example_ids.alarm_id,
  kit_id,
  what: 'link',
  subject: 'eth3',
  assets: [],
  severity: 'warning',
  state: 'acknowledged',
  since: time,
  last: time,
  count: 1,
  acknowledged: { by: 'dispatch centre', at: time },
  note: 'The provider has been called.',
};

const event = (type: WebhookType, data: object) => ({ type, timestamp: time, data: { kit_id, ...data } });

const alarmEvent = (type: WebhookType, about: Partial<AlarmResource>) => {
  const { acknowledged: _, note: __, subject: ___, ...rest } = anAlarm;
  return event(type, { change: 'opened', alarm: { ...rest, state: 'open', ...about } });
};

const webhookExamples: readonly (readonly [z.ZodType, unknown])[] = [
  [
    webhookBodies['task.ended'],
    event('task.ended', {
      task: {
        id: '7d3b2c10-55aa-4c1e-8f00-0a1b2c3d4e5f',
        asset_id,
        command_name: 'return_home',
        payload: {},
        status: 'completed',
        result: { flight_mode: 'RTL' },
        requested_by: '0c6f8a2f-5a11-4d0e-8a44-b3d0c1de55c1',
        requested_by_name: 'dispatch centre',
        created_at: time,
        updated_at: time,
      },
    }),
  ],
  [
    webhookBodies.alarm,
    event('alarm', { asset_id, feed: 'motion', severity: 'info', message: { detected: true } }),
  ],
  [webhookBodies.file, event('file', { file: aFile, alarms: [anAlarm.id] })],
  [webhookBodies.asset, alarmEvent('asset', { what: 'asset', assets: [asset_id] })],
  [webhookBodies.link, alarmEvent('link', { subject: 'eth3' })],
  [webhookBodies.battery, alarmEvent('battery', { what: 'battery', value: 18 })],
  [webhookBodies.queue, alarmEvent('queue', { what: 'queue', value: 1_200 })],
  [
    webhookBodies['kit.degraded'],
    alarmEvent('kit.degraded', { what: 'degraded', subject: 'disk: 95 % full' }),
  ],
  [fileResource, aFile],
  [fileList, { files: [aFile], next: null }],
  [alarm, anAlarm],
  [alarmList, { alarms: [anAlarm], next: null }],
  [changeAlarm, { acknowledged: true, note: anAlarm.note }],
  [webhookBodies['kit.online'], event('kit.online', { reason: null })],
  [webhookBodies['kit.offline'], event('kit.offline', { reason: 'connection lost' })],
  [webhook, aWebhook],
  [webhookList, { webhooks: [aWebhook] }],
  [createdWebhook, { ...aWebhook, secret }],
  [createWebhook, { label: aWebhook.label, url: aWebhook.url, types: aWebhook.types }],
  [changeWebhook, { enabled: true }],
  [webhookSecret, { secret, old_secret_expires_at: '2026-11-22T10:00:00.000Z' }],
  [
    deadLetterList,
    {
      messages: [
        {
          id: message_id,
          type: 'alarm',
          kit_id,
          observed_at: time,
          queued_at: time,
          dead_at: '2026-11-24T14:00:00.000Z',
          attempts: 10,
          reason: 'gave up after 10 attempts: answered with status 500',
          payload: {
            type: 'alarm',
            timestamp: time,
            data: { kit_id, asset_id, feed: 'motion', severity: 'info', message: { detected: true } },
          },
        },
      ],
    },
  ],
  [replayDead, { ids: [message_id] }],
  [replayed, { replayed: 1 }],
  [tested, { delivered: false, status: 404, reason: 'answered with status 404', duration_ms: 83 }],
  [purged, { purged: 1 }],
];

const aLocation: z.input<typeof locationResource> = {
  latitude: 47.39,
  longitude: 8.54,
  altitude: 455.2,
  source: 'satellite',
  stale: false,
  kit_location: 'Zurich',
};

const aLink: z.input<typeof linkResource> = {
  name: 'eth3',
  type: 'satellite',
  status: 'online',
  isp: 'Example Satellite',
  ip: '203.0.113.7',
  rx_bps: 12_100_000,
  tx_bps: 1_900_000,
  rx_bps_max: 96_000_000,
  tx_bps_max: 14_000_000,
  latency_ms: 48.2,
  jitter_ms: 6.1,
  packet_loss_pct: 0.2,
  availability_pct: 99.6,
  usage: { today_rx_gb: 1.25, today_tx_gb: 0.2, month_rx_gb: 18.4, month_tx_gb: null },
};

const aGateway: z.input<typeof gatewayResource> = {
  name: 'gw-7',
  model: 'MX-1',
  cpu_pct: 31.5,
  mem_pct: 40.1,
  uptime_s: 259_200,
};

const aClient = { name: 'tablet', ip: '10.0.0.12', mac: '02:00:00:aa:bb:cc', type: 'wireless' } as const;

const aSpeedtest: z.input<typeof speedtestResource> = {
  download_mbps: 92.4,
  upload_mbps: 11.8,
  latency_ms: 44,
  timestamp: time,
};

const aBattery: z.input<typeof battery> = { battery: 82, battery_charging: false };

export const aKit: z.input<typeof kit> = {
  id: kit_id,
  name: 'Kit 7',
  online: true,
  last_seen: time,
  live: { location: aLocation, wans: [aLink], ...aBattery, gateway: aGateway },
  summary: {
    link: { name: 'eth3', type: 'satellite' },
    latency_ms: 48.2,
    ...aBattery,
    waiting: 3,
    assets: { online: 4, total: 5 },
    attention: [{ key: 'asset', level: 'warn', subject: asset_id }],
  },
};

const aQueue: z.input<typeof queue> = {
  online: true,
  since: time,
  reason: null,
  software: 'kit-connector 0.2.0',
  as_of: time,
  waiting_rows: 3,
  waiting_bytes: 812,
  oldest: time,
  received: 41_230,
  duplicates: 12,
  missing: 0,
  dropped: 0,
  refused: 1,
  refused_last: [
    {
      time,
      since: time,
      channel: 'telemetry',
      reason: 'data.battery: expected number, received string "full"',
      count: 1,
    },
  ],
  dropped_last: [],
  degraded: [],
};

const anAsset: z.input<typeof asset> = {
  id: asset_id,
  asset_key: 'mavlink:0123456789abcdef',
  name: 'Quadrotor 1',
  type: 'drone',
  vendor: null,
  model: 'Quad',
  protocol: 'mavlink',
  status: 'online',
  last_seen_at: time,
  parent_id: null,
  lat: 47.39,
  lon: 8.54,
  whep_url: null,
};

const aPartner: z.input<typeof createdAsset> = {
  id: partner_id,
  asset_key: `${kit_id}:partner:${partner_id}`,
  kit_id,
  name: 'Truck 4',
  type: 'vehicle',
  vendor: 'ACME',
  model: null,
  protocol: 'partner',
  metadata: { crew: 'north' },
  status: 'online',
  last_seen_at: time,
  parent_id: null,
};

export const aTask: z.input<typeof task> = {
  id: task_id,
  asset_id,
  command_name: 'goto_waypoint',
  payload: { lat: 47.3985, lon: 8.5456, alt_m: 530 },
  status: 'pending',
  result: {},
  requested_by: '9a1f4c36-2f0e-4a3f-9f0b-0f7f3e2d1c0b',
  requested_by_name: 'ops room',
  created_at: time,
  updated_at: time,
};

const aCommand: z.input<typeof commandListResource>['commands'][number] = {
  id: '2f1e9a34-8c0b-5d57-b1f5-3f0d7d3b6a10',
  name: 'goto_waypoint',
  description: 'Flies to a position',
  risk_level: 'high',
  requires_approval: true,
  input_schema: {
    type: 'object',
    properties: { lat: { type: 'number' }, lon: { type: 'number' }, alt_m: { type: 'number' } },
    required: ['lat', 'lon', 'alt_m'],
  },
};

/** By schema. */
export const examples = new Map<z.ZodType, unknown>();
function give<S extends z.ZodType>(schema: S, example: z.input<S>): void {
  examples.set(schema, example);
}

give(kit, aKit);
give(kitList, [aKit]);
give(kitTelemetrySnapshot, {
  online: true,
  kit_id,
  kit_name: aKit.name,
  ...aBattery,
  location: aLocation,
  gateway: aGateway,
  wans: [aLink],
  clients: [aClient],
  speedtest: aSpeedtest,
});
give(linkResource, aLink);
give(linkList, { links: [aLink] });
give(locationResource, aLocation);
give(battery, aBattery);
give(gatewayResource, aGateway);
give(clientList, { clients: [aClient] });
give(speedtestResource, aSpeedtest);
give(queue, aQueue);
give(asset, anAsset);
give(assetDetails, {
  ...anAsset,
  id: partner_id,
  asset_key: `${kit_id}:partner:${partner_id}`,
  name: 'Truck 4',
  type: 'vehicle',
  vendor: 'ACME',
  model: null,
  protocol: 'partner',
  metadata: { crew: 'north' },
});
give(assetList, { assets: [anAsset] });
give(createdAsset, aPartner);
give(assetFeeds, {
  gps: { lat: 47.39, lon: 8.54, alt_m: 535.3, ground_speed: 8.25, heading: 271.5 },
  battery: { voltage: 15.8, current: 12.4, remaining_pct: 71 },
});
give(commandListResource, { commands: [aCommand] });
give(task, aTask);
give(taskList, { tasks: [aTask] });
give(session, { kits: [kit_id], scopes: ['read', 'commands'] });
give(createAsset, { name: 'Truck 4', type: 'vehicle', vendor: 'ACME', metadata: { crew: 'north' } });
give(changeKit, { name: 'North ridge', tags: ['alps', 'rescue'], time_zone: 'Europe/Zurich' });
give(changeAsset, { metadata: { crew: 'south', seats: 4 } });
give(sendCommand, { payload: { lat: 47.3985, lon: 8.5456, alt_m: 530 } });
give(pushLocation, { lat: 47.3985, lon: 8.5456, alt_m: 455.2, bearing: 271.5, speed_mps: 8.2 });
give(pushLocations, { locations: [{ asset_id: partner_id, lat: 47.3985, lon: 8.5456, alt_m: 455.2 }] });
const aKey = {
  id: '0123456789ab',
  label: 'ops room',
  scopes: ['read', 'alarms'],
  kits: [kit_id],
  created_at: time,
  is_own: false,
};
give(key, aKey);
give(keyList, { keys: [aKey] });
give(createdKey, { ...aKey, key: 'kc_0123456789ab_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' });
give(changeKey, { kits: [example_ids.kit_id], scopes: ['read'] });
give(createKey, { label: 'ops room', scopes: ['read', 'alarms'], expires_at: '2027-01-31T18:00:00Z' });
give(assetLayer, {
  type: 'FeatureCollection',
  features: [
    {
      type: 'Feature',
      id: asset_id,
      geometry: { type: 'Point', coordinates: [8.5456, 47.3985, 512.4] },
      properties: {
        id: asset_id,
        kit_id,
        kit_name: 'Kit 7',
        name: 'Quadrotor 1',
        type: 'drone',
        status: 'online',
        last_seen_at: time,
        positioned_at: time,
        heading: 90,
      },
    },
  ],
});
give(openSession, { api_key: 'kc_0123456789ab_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' });
give(mapResource, {
  archive: {
    url: map_archive_path,
    etag: '"1w-9c4-2qk-hf3x"',
    bytes: 48_211_004,
    tile_type: 'mvt',
    tile_compression: 'gzip',
    min_zoom: 0,
    max_zoom: 14,
    bounds: [8.3, 47.2, 8.8, 47.6],
    center: { lat: 47.4, lon: 8.55, zoom: 10 },
    attribution: '© OpenStreetMap',
    vector_layers: ['earth', 'water', 'roads'],
  },
});

for (const [schema, example] of webhookExamples) give(schema, example);

const motion = { time, asset_id, data: { active: true } };
give(historyPage, {
  messages: [
    {
      time,
      channel: `feed/${asset_id}/gps`,
      asset_id,
      feed: 'gps',
      epoch: 17,
      seq: 4_211,
      data: { lat: 47.39, lon: 8.54 },
    },
  ],
  next: null,
});
give(eventPage, { events: [{ ...motion, kit_id, type: 'motion' }], next: null });
give(seriesAnswer, {
  from: time,
  to: '2026-11-21T11:00:00.000Z',
  bucket_ms: 3_600_000,
  series: [
    {
      select: 'kit:battery',
      source: 'figures',
      t: [time],
      n: [12],
      mean: [81.5],
      min: [80],
      max: [83],
      last: [80],
    },
  ],
});
give(track, {
  type: 'Feature',
  properties: { asset_id, name: 'Quadrotor 1', fixes: 240, times: [[time, '2026-11-21T10:01:00.000Z']] },
  geometry: {
    type: 'MultiLineString',
    coordinates: [
      [
        [8.54, 47.39, 535.3],
        [8.55, 47.4, 540.1],
      ],
    ],
  },
});
const kept = { days: { event: 400, position: 30, feed: 30, kit: 90 }, figures_days: 400, kit_max_mb: null };
give(erasureList, { erasures: [{ asset_id, before: time, erased_at: time }], next: null });
give(setRetention, kept);
give(historyRetention, { ...kept, source: 'configuration' });
give(completeness, {
  since: time,
  oldest: { event: time, position: time, feed: time, kit: null },
  more_dropped: false,
  epochs: [
    {
      epoch: 17,
      received: 41_230,
      missing: [{ lo: 120, hi: 141, messages: 22, reasons: ['expired'] }],
      more: 0,
      dropped: [{ lo: 118, hi: 141, lane: 'feed', reason: 'expired', messages: 22, reported_at: time }],
    },
  ],
});

export function problemExample(status: number, detail: string): Problem {
  const [kind, [, title]] = Object.entries(titles).find(([, [code]]) => code === status) ?? [
    'internal',
    [500, 'Internal error'],
  ];
  return {
    type: `/problems/${kind}`,
    title,
    status,
    detail,
    instance: '3b0c6a52-9d4e-4f0e-8d1e-5a2b7c9d0e1f',
    ...(status === 422 && { errors: [{ pointer: '#/lat', detail: 'expected number' }] }),
  };
}
