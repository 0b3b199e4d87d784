/** A client in TypeScript whose types come from the OpenAPI document: it compiles, and it works against the service. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { jsonObject } from '../../../src/contract/json.ts';
import { channels } from '../../../src/contract/topics.ts';
import { asset_id, kit_id, samples } from '../../support/contract-samples.ts';
import { type ServiceLab, startServiceLab } from '../../support/service/service-lab.ts';
import { pmtilesArchive } from '../../support/service/pmtiles-archive.ts';
import { typesOf } from '../../support/service/typescript-client.ts';

const run = promisify(execFile);
/** The directory with the installed packages, for the program below. */
const modules = fileURLToPath(import.meta.resolve('openapi-fetch')).replace(/openapi-fetch\/.*$/u, '');

let lab: ServiceLab;
let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'kit-client-'));
  const map_file = join(dir, 'area.pmtiles');
  await writeFile(map_file, pmtilesArchive());
  const webhooks = { allow: [], allow_http: false, timeout_ms: 1_000, disable_after_ms: 3_600_000 };
  lab = await startServiceLab(kit_id, { map_file, webhooks });
});
afterEach(async () => {
  await lab.stop();
  await rm(dir, { recursive: true });
});

const program = `
import createClient from 'openapi-fetch';
import type { components, paths } from './api.ts';

const [baseUrl = '', key = '', kit_id = '', asset_id = ''] = process.argv.slice(2);
const api = createClient<paths>({ baseUrl, headers: { 'X-API-Key': key } });

const kits = await api.GET('/api/kits');
const first: components['schemas']['Kit'] | undefined = kits.data?.[0];
const link = await api.GET('/api/kits/{kit_id}/links/{link_name}', { params: { path: { kit_id, link_name: 'satellite' } } });
const made = await api.POST('/api/kits/{kit_id}/assets', {
  params: { path: { kit_id } },
  body: { name: 'Truck 4', type: 'vehicle' },
});
if (!made.data) throw new Error(made.error?.detail);
const place = { params: { path: { kit_id, asset_id: made.data.id } } };
const pushed = await api.POST('/api/kits/{kit_id}/assets/{asset_id}/location', { ...place, body: { lat: 47.5, lon: 8.5 } });
// @ts-expect-error -- a latitude is a number
const wrong = await api.POST('/api/kits/{kit_id}/assets/{asset_id}/location', { ...place, body: { lat: 'x', lon: 8.5 } });
const feeds = await api.GET('/api/kits/{kit_id}/assets/{asset_id}/telemetry', place);
const sent = await api.POST('/api/kits/{kit_id}/assets/{asset_id}/commands/{command_name}', {
  params: { path: { kit_id, asset_id, command_name: 'goto_waypoint' } },
  body: { payload: { lat: 47.4 } },
});
const tasks = await api.GET('/api/kits/{kit_id}/tasks', { params: { path: { kit_id }, query: { status: 'pending' } } });
const map = await api.GET('/api/map');
const hook = await api.POST('/api/webhooks', {
  body: { label: 'centre', url: 'https://app.example.com/hook', types: ['alarm', 'kit.offline'] },
});
if (!hook.data) throw new Error(hook.error?.detail);
const hooked = { params: { path: { webhook_id: hook.data.id } } };
// @ts-expect-error -- there is no event of this type
await api.PATCH('/api/webhooks/{webhook_id}', { ...hooked, body: { types: ['nonsense'] } });
const paused = await api.PATCH('/api/webhooks/{webhook_id}', { ...hooked, body: { enabled: false } });
const dead = await api.GET('/api/webhooks/{webhook_id}/dead', hooked);
const replayed = await api.POST('/api/webhooks/{webhook_id}/dead/replay', hooked);
const gone = await api.DELETE('/api/webhooks/{webhook_id}', hooked);
console.log(JSON.stringify({
  zooms: [map.data?.archive?.min_zoom, map.data?.archive?.max_zoom],
  paused: paused.data?.status,
  dead: dead.data?.messages.length,
  replayed: replayed.data?.replayed,
  gone: gone.response.status,
  kit: first?.id,
  link: link.data?.name,
  pushed: pushed.response.status,
  refused: wrong.error?.errors?.[0]?.pointer,
  lat: feeds.data?.['gps']?.['lat'],
  location: sent.response.headers.get('location'),
  tasks: tasks.data?.tasks.map(({ id }) => id === sent.data?.id),
}));
`;

const settings = {
  compilerOptions: {
    strict: true,
    noEmit: true,
    target: 'es2024',
    module: 'nodenext',
    moduleResolution: 'nodenext',
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    types: ['node'],
  },
  include: ['*.ts'],
};

it('compiles strictly and runs', async () => {
  await lab.publish(channels.state, samples['kitState'] ?? {});
  await lab.publish(channels.telemetry, samples['kitTelemetry'] ?? {});
  await lab.publish(channels.asset(asset_id), samples['announcement'] ?? {});
  await lab.publish(channels.commands(asset_id), samples['commandList'] ?? {});
  const document = jsonObject.parse(await (await fetch(`${lab.url}/openapi.json`)).json());
  await writeFile(join(dir, 'api.ts'), await typesOf(document));
  await writeFile(join(dir, 'client.ts'), program);
  await writeFile(join(dir, 'package.json'), JSON.stringify({ type: 'module' }));
  await writeFile(join(dir, 'tsconfig.json'), JSON.stringify(settings));
  await symlink(modules, join(dir, 'node_modules'));

  const compiled = await run(process.execPath, [join(modules, 'typescript/bin/tsc'), '-p', dir]).catch(
    (error: { stdout: string }) => error,
  );
  expect(compiled.stdout).toBe('');
  const { stdout } = await run(process.execPath, [
    join(dir, 'client.ts'),
    lab.url,
    lab.key,
    kit_id,
    asset_id,
  ]);
  expect(JSON.parse(stdout)).toEqual({
    zooms: [0, 14],
    paused: 'disabled',
    dead: 0,
    replayed: 0,
    gone: 204,
    kit: kit_id,
    link: 'eth3',
    pushed: 204,
    refused: '#/lat',
    lat: 47.5,
    location: expect.stringMatching(`^/api/kits/${kit_id}/tasks/`) as string,
    tasks: [true],
  });
});
