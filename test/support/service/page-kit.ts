/** Assets of every type for the kit of the page's tests, beside the drones that it has anyway. */
import { createHash } from 'node:crypto';
import type { JsonObject } from '../../../src/contract/json.ts';
import { samplePicture } from '../../../src/toolkit/device/pictures/sample-picture.ts';
import { channels } from '../../../src/contract/topics.ts';
import { samples } from '../contract-samples.ts';
import { announce, ids, page_kit_id } from './page-lab.ts';
import type { ServiceLab } from './service-lab.ts';

export const more_ids = {
  camera: '5b671a64-40d5-591e-99b0-da01ff1f3345',
  radio: '6b671a64-40d5-591e-99b0-da01ff1f3346',
  gateway: '7b671a64-40d5-591e-99b0-da01ff1f3347',
} as const;

/** Paths of the screens below the kit's. */
export const screens = [
  '',
  '/map',
  '/assets',
  `/a/${ids.drone}`,
  `/a/${more_ids.camera}`,
  `/a/${more_ids.radio}`,
  '/links',
  '/activity',
  '/settings',
];

const schema = (properties: object, required: readonly string[]): object => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});
const command = (n: number, name: string, input_schema: object, risk_level = 'low'): object => ({
  id: `${n}1000000-0000-5000-8000-000000000000`,
  name,
  description: `Description of ${name}`,
  risk_level,
  requires_approval: risk_level === 'high',
  input_schema,
});

export const camera_commands = [
  command(
    1,
    'ptz_move',
    schema(
      {
        direction: { type: 'string', enum: ['up', 'down', 'left', 'right', 'stop'] },
        speed: { type: 'integer', minimum: 1, maximum: 64, default: 32 },
      },
      ['direction'],
    ),
  ),
  command(
    2,
    'ptz_preset',
    schema(
      {
        preset_id: {
          oneOf: [
            { const: 1, title: 'Gate' },
            { const: 2, title: 'Road' },
          ],
        },
      },
      ['preset_id'],
    ),
  ),
  command(3, 'set_motion_detection', schema({ enabled: { type: 'boolean' } }, ['enabled']), 'medium'),
];

const radio_commands = [
  command(
    4,
    'set_txpower',
    schema(
      {
        dbm: {
          anyOf: [
            { type: 'number', const: 10 },
            { type: 'number', const: 20 },
            { type: 'string', const: 'auto' },
          ],
        },
      },
      ['dbm'],
    ),
    'medium',
  ),
];

export const file_ids = {
  alarm: '1e7e2a90-6b1d-4f3a-8e52-9d0c1b2a3f41',
  log: '2e7e2a90-6b1d-4f3a-8e52-9d0c1b2a3f42',
  coming: '3e7e2a90-6b1d-4f3a-8e52-9d0c1b2a3f43',
  given_up: '4e7e2a90-6b1d-4f3a-8e52-9d0c1b2a3f44',
} as const;

/** Announces the still of the alarm of the camera, which waits at the kit, and three flight logs: one waits, one comes, one was given up. */
export async function playFiles(lab: ServiceLab, at: string, still: Buffer = samplePicture()): Promise<void> {
  const report = async (id: string, about: JsonObject): Promise<void> =>
    lab.publish(channels.file(id), { ...samples['fileReport'], id, at, ...about });
  await report(file_ids.alarm, {
    asset_id: more_ids.camera,
    bytes: still.length,
    sha256: createHash('sha256').update(still).digest('hex'),
    thumbnail: samplePicture().toString('base64'),
    alarms: [{ feed: 'ai_detection', timestamp: at }],
  });
  const log = {
    kind: 'flight_log',
    asset_id: ids.drone,
    content_type: 'application/octet-stream',
    bytes: 8e6,
  };
  const { thumbnail: _, alarms: __, ...plain } = samples['fileReport'] ?? {};
  for (const [id, about] of [
    [file_ids.log, { name: '00000042.BIN', reason: 'the link sends files on order only' }],
    [file_ids.coming, { name: '00000043.BIN' }],
    [
      file_ids.given_up,
      { name: '00000041.BIN', state: 'dropped', reason: 'the space for files was used up' },
    ],
  ] as const)
    await lab.publish(channels.file(id), { ...plain, ...log, id, at, ...about });
  const coming = { kit_id: page_kit_id, file_id: file_ids.coming };
  lab.changes.publish([await lab.store.fileProgress(coming, 3.4e6, Date.now())]);
}

/** Announces a camera that moves, a radio with a peer, and the gateway. */
export async function playMore(lab: ServiceLab): Promise<void> {
  await announce(lab, more_ids.camera, {
    name: 'Gate camera',
    type: 'camera',
    protocol: 'vendorcam',
    vendor: 'Acme',
    model: 'Dome 2',
    feeds: ['status', 'motion', 'ai_detection', 'alarm_picture'],
  });
  await lab.publish(channels.commands(more_ids.camera), { revision: 1, commands: camera_commands as never });
  await lab.publish(channels.event(more_ids.camera, 'ai_detection'), samples['vendorcamAiDetection'] ?? {});
  await lab.publish(channels.feed(more_ids.camera, 'alarm_picture'), {
    ...samples['onvifAlarmPicture'],
    jpeg: samplePicture().toString('base64'),
  });
  await announce(lab, more_ids.radio, {
    name: 'Mast radio',
    type: 'radio',
    protocol: 'vendorradio',
    feeds: ['radio', 'link', 'mesh', 'status'],
  });
  await lab.publish(channels.commands(more_ids.radio), { revision: 1, commands: radio_commands as never });
  for (const [feed, sample] of [
    ['mesh', 'vendorradioMesh'],
    ['link', 'vendorradioLink'],
    ['radio', 'vendorradioRadio'],
  ] as const)
    await lab.publish(channels.feed(more_ids.radio, feed), samples[sample] ?? {});
  const clients = [
    { name: 'gate-camera', ip: '192.168.8.21', mac: '02:00:00:00:00:21', type: 'wired' },
    { name: null, ip: 'fe80::8', mac: '02:00:00:00:00:08', type: 'wireless' },
  ];
  await lab.publish(channels.telemetry, { clients });
  await announce(lab, more_ids.gateway, {
    name: 'gw-7',
    type: 'gateway',
    protocol: 'gateway',
    feeds: [],
    lat: 47.39,
    lon: 8.54,
  });
}
