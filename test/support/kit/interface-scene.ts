/** The whole chain for the tests of the interface: a kit of played drivers, and the service in one of its two forms. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { runProgram } from '../../../src/cli/program.ts';
import { assetId } from '../../../src/contract/identity.ts';
import { type Broker, startMosquitto } from '../brokers/broker.ts';
import { type Child, startChild } from '../child.ts';
import { sleep } from '../../../src/platform/time.ts';
import { eventually } from '../eventually.ts';
import { bundledPrograms } from './bundled.ts';
import { playedDrivers } from './played-kit.ts';
import { peerMissing } from '../peers.ts';
import { startPostgres } from '../database/postgres.ts';
import { makeDirectory } from '../temporary.ts';
import { freePort } from '../ports.ts';
import { recordedShell } from '../../unit/cli/shell-of-test.ts';

/** `sqlite`, `postgres`: the service runs alone on this database. `kit`: inside the daemon, and there is no broker that answers. */
export const forms = ['kit', 'sqlite', 'postgres'] as const;
export type Form = (typeof forms)[number];

/** What the tests look into; of an answer that is none of this, only what `expect` compares counts. */
export interface Body {
  readonly [index: number]: Body;
  readonly length: number;
  readonly id: string;
  readonly name: string;
  readonly type: string;
  readonly protocol: string;
  readonly asset_id: string;
  readonly command_name: string;
  readonly status: string;
  readonly online: boolean;
  readonly last_seen: string;
  readonly detail: string;
  readonly vendor: string | null;
  readonly asset_key: string;
  readonly requires_approval: boolean;
  readonly requested_by: string;
  readonly live: unknown;
  readonly location: unknown;
  readonly usage: unknown;
  readonly errors: unknown;
  readonly paths: object;
  readonly result: { readonly error?: string };
  readonly assets: readonly Body[];
  readonly commands: readonly Body[];
  readonly tasks: readonly Body[];
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
  readonly text: string;
}

export interface Asked {
  readonly method?: string;
  readonly body?: unknown;
  /** Null: none. */
  readonly key?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Scene {
  readonly form: Form;
  readonly url: string;
  readonly key: string;
  readonly kit_id: string;
  /** `/api/kits/{kit_id}`. */
  readonly path: string;
  readonly drone: string;
  readonly vendorcam: string;
  readonly onvif: string;
  readonly gateway: string;
  readonly broker: Broker | undefined;
  /** Waits where the rate limit says so. */
  ask(path: string, asked?: Asked): Promise<Answer>;
  /** Without options: for this kit and everything. The service knows it. */
  newKey(...options: readonly string[]): Promise<string>;
  close(): Promise<void>;
}

/** The forms that can run here. */
export function formsHere(): readonly Form[] {
  const isPostgresMissing = peerMissing('postgres', 'initdb', 'setpriv');
  return forms.filter((form) => form !== 'postgres' || !isPostgresMissing);
}

/** A broker, a database, a daemon and a service start in a scene: on a busy machine that takes long. */
export const scene_ms = 120_000;

/** To be called where tests are described: opens a scene before them and closes it after them. */
export function sceneFor(form: Form): Scene {
  const scene = {} as Scene;
  let opened: Scene | undefined;
  beforeAll(async () => {
    opened = await openScene(form);
    Object.assign(scene, opened);
  }, scene_ms);
  afterAll(async () => opened?.close());
  return scene;
}

/** Resolves when the kit and all its assets are seen through the service. */
async function openScene(form: Form): Promise<Scene> {
  const programs = await bundledPrograms();
  const dir = await makeDirectory();
  const kit_id = randomUUID();
  const children: Child[] = [];
  const broker = form === 'kit' ? undefined : await startMosquitto();
  const server = form === 'postgres' ? await startPostgres() : undefined;
  const port = await freePort();
  const daemon_config = join(dir, 'config.yaml');
  const service_config = join(dir, 'service.yaml');
  const database = server ? await server.newDatabase('kits') : join(dir, 'cloud.db');
  const database_password_file = join(dir, 'postgres-password');
  if (server) await writeFile(database_password_file, server.password, { mode: 0o600 });
  await writeFile(
    daemon_config,
    JSON.stringify({
      kit_id,
      kit_name: 'Kit Seven',
      clock: 'trusted',
      state_dir: join(dir, 'state'),
      runtime_dir: join(dir, 'run'),
      broker: { url: broker?.url ?? `mqtt://127.0.0.1:${await freePort()}` },
      media: { server: 'template', url: 'http://127.0.0.1:8889/{name}/whep' },
      commands: { disabled: [{ asset: 'vendorcam', command: 'reboot' }] },
      drivers: playedDrivers.map(({ name }) => ({ driver: name })),
      ...(form === 'kit' && { service: { listen: `127.0.0.1:${port}` } }),
    }),
  );
  let key = '';
  let seen = '';
  const url = `http://127.0.0.1:${port}`;
  const ask: Scene['ask'] = async (path, asked = {}) => askOnce(url, path, { key, ...asked });
  // In this process: starting another one for each key takes as long as many of the tests together.
  const newKey: Scene['newKey'] = async (...options) => {
    const shell = recordedShell();
    const rights = options.length === 0 ? ['--kit', kit_id] : options;
    const place = broker ? ['--config', service_config] : ['--database', join(dir, 'state/service.db')];
    const code = await runProgram(['service', 'key', 'add', 'test', ...place, ...rights], shell);
    if (code !== 0) throw new Error(`no key was added (${code}): ${shell.stderr()}`);
    const added = shell.stdout().trim();
    // The service looks for new keys a few times a second.
    await eventually('the key is known', async () => (await ask('/api/kits', { key: added })).status === 200);
    return added;
  };
  const close = async (): Promise<void> => {
    for (const child of children) await child.end('SIGTERM');
    await broker?.stop();
    await server?.stop();
    await rm(dir, { recursive: true, force: true, maxRetries: 3 });
  };
  try {
    if (broker) {
      const section = { broker: { url: broker.url }, database, listen: `127.0.0.1:${port}` };
      const secret = server && { database_password_file };
      await writeFile(service_config, JSON.stringify({ ...section, ...secret }));
      const service = startChild([programs.command, 'service', '--config', service_config]);
      children.push(service);
      await service.printed(/service connected to the broker/u);
      key = await newKey();
    }
    const daemon = startChild([programs.daemon, daemon_config]);
    children.push(daemon);
    await daemon.printed(/kit-connector started/u);
    if (form === 'kit') key = readFileSync(join(dir, 'state', 'service-key'), 'utf8').trim();
    await eventually('the whole kit is seen', async () => {
      const { body: list } = await ask(`/api/kits/${kit_id}/assets`);
      const telemetry = await ask(`/api/kits/${kit_id}/telemetry`);
      const feeds = await ask(`/api/kits/${kit_id}/assets/${assetId(kit_id, 'onvif')}/telemetry`);
      seen = `${JSON.stringify(list)} ${telemetry.text} ${feeds.text}`;
      // No faster than a key may ask.
      await sleep(200, new AbortController().signal);
      const isComplete = Array.isArray(list.assets) && list.assets.length >= 4;
      return isComplete && Boolean(telemetry.body.location) && feeds.text.includes('"online":true');
    });
  } catch (error) {
    const said = children.map((child) => child.output()).join('\n');
    await close();
    throw new Error(`the scene did not come up: ${said}\n${seen}`, { cause: error });
  }
  const id = (asset_key: string): string => assetId(kit_id, asset_key);
  const assets = {
    drone: id('drone'),
    vendorcam: id('vendorcam'),
    onvif: id('onvif'),
    gateway: id('gateway'),
  };
  return { form, url, key, kit_id, path: `/api/kits/${kit_id}`, ...assets, broker, ask, newKey, close };
}

async function askOnce(url: string, path: string, asked: Asked): Promise<Answer> {
  const { method, body, key, headers = {} } = asked;
  const response = await fetch(url + path, {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    headers: {
      ...(typeof key === 'string' ? { 'x-api-key': key } : {}),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = text !== '' && response.headers.get('content-type')?.includes('json') === true;
  const { status, headers: answered } = response;
  if (status === 429) {
    await new Promise((resolve) => {
      setTimeout(resolve, Number(answered.get('retry-after')) * 1_000);
    });
    return askOnce(url, path, asked);
  }
  return { status, headers: answered, body: (isJson ? JSON.parse(text) : undefined) as Body, text };
}
