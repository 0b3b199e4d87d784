/** The AsyncAPI document of the WebSockets: valid, and its schemas accept the frames that clients get. */
import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import { Ajv } from 'ajv';
import formats from 'ajv-formats';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { channels } from '../../../../src/contract/topics.ts';
import { socketDocument } from '../../../../src/cloud/api/socket-document.ts';
import { asset_id, kit_id, samples } from '../../../support/contract-samples.ts';
import { eventually } from '../../../support/eventually.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';

const specification = new URL('../../../../node_modules/@asyncapi/specs/schemas/3.1.0.json', import.meta.url);
const document = JSON.parse(JSON.stringify(socketDocument('1.0.0'))) as {
  channels: Record<string, { address: string }>;
  components: { schemas: Record<string, object> };
};

let lab: ServiceLab;
beforeEach(async () => {
  lab = await startServiceLab(kit_id);
});
afterEach(async () => lab.stop());

it('is valid by the official schema of AsyncAPI 3.1.0', () => {
  const ajv = new Ajv({ strict: false, allErrors: true, meta: false, validateSchema: false });
  formats.default(ajv);
  const isAsyncApi = ajv.compile(JSON.parse(readFileSync(specification, 'utf8')) as object);
  expect(isAsyncApi(document) ? [] : isAsyncApi.errors).toEqual([]);
});

it('is served without a key', async () => {
  const response = await fetch(`${lab.url}/asyncapi.json`);
  expect([response.status, Object.keys(((await response.json()) as typeof document).channels)]).toEqual([
    200,
    ['kit', 'fleet'],
  ]);
});

it.each([
  ['kit', `/api/kits/${kit_id}/ws`, { type: 'subscribe', assets: '*' }],
  ['fleet', '/api/ws', { type: 'subscribe', summaries: true, kits: [kit_id] }],
])('accepts every frame that the %s socket sends', async (name, path, subscribe) => {
  await lab.publish(channels.state, samples['kitState'] ?? {});
  await lab.publish(channels.asset(asset_id), samples['announcement'] ?? {});
  const ajv = new Ajv({ strict: false, allErrors: true });
  formats.default(ajv);
  ajv.addSchema({ $id: 'doc', components: document.components });
  const socket = new WebSocket(`${lab.url.replace('http', 'ws')}${path}`, {
    headers: { 'x-api-key': lab.key },
  });
  const seen = new Set<string>();
  const faults: unknown[] = [];
  socket.on('message', (raw: Buffer) => {
    const frame = JSON.parse(raw.toString('utf8')) as { type: string };
    seen.add(frame.type);
    const schema = { $ref: `doc#/components/schemas/${name}_${frame.type}` };
    if (!ajv.validate(schema, frame)) faults.push(frame.type, ajv.errors);
  });
  await once(socket, 'open');
  socket.send(JSON.stringify(subscribe));
  await eventually('the snapshot', () => seen.has('snapshot'));
  await lab.publish(channels.telemetry, samples['kitTelemetry'] ?? {});
  await lab.publish(channels.commands(asset_id), samples['commandList'] ?? {});
  await lab.publish(channels.feed(asset_id, 'gps'), samples['droneGps'] ?? {});
  await lab.publish(channels.task('7d3b2c10-55aa-4c1e-8f00-0a1b2c3d4e5f'), samples['taskReport'] ?? {});
  socket.send('{"type":"ping"}');
  await eventually('all frames', () =>
    ['kit', 'queue', 'commands', 'feed', 'task', 'heartbeat'].every((type) => seen.has(type)),
  );
  socket.terminate();
  expect(faults).toEqual([]);
});
