/** The service inside the daemon: it waits for its address, and what people made of it outlives the daemon. */
import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { createServer } from 'node:net';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { type App, startApp } from '../../../../src/kit/app/app.ts';
import { vouched, systemClock } from '../../../../src/platform/clock.ts';
import { PartnerPublisher } from '../../../../src/kit/app/own-service.ts';
import { StorageUnavailable } from '../../../../src/platform/errors.ts';
import { createLog } from '../../../../src/platform/log/log.ts';
import { samplePicture } from '../../../../src/toolkit/device/pictures/sample-picture.ts';
import { openSqlite } from '../../../../src/cloud/sql/sqlite.ts';
import { schema } from '../../../../src/cloud/sql/schema.ts';
import { sqlStore } from '../../../../src/cloud/store/sql-store.ts';
import { startFakeCamera } from '../../../fakes/fake-onvif-camera.ts';
import { makeCertificates } from '../../../support/certificates.ts';
import { eventually } from '../../../support/eventually.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { withDirectory } from '../../../support/temporary.ts';
import { testDirectory } from '../../../support/test-directory.ts';
import { kit_id, readText } from '../config/lab.ts';
import { texts } from '../../../../src/kit/app/texts.ts';

const logLine = z.looseObject({ level: z.string(), msg: z.string() });
const made = z.looseObject({ id: z.string() });
const kept = z.object({
  epochs: z.array(z.object({ received: z.int(), missing: z.array(z.json()) })),
});
const kit = `/api/kits/${kit_id}`;

interface Daemon {
  readonly app: App;
  /** Once; else the end of the test does it. */
  readonly stop: () => Promise<void>;
  readonly log: () => readonly z.output<typeof logLine>[];
}

/** A daemon without devices and broker, with the service on this port. */
async function startDaemon(dir: string, port: number, more = ''): Promise<Daemon> {
  const text = `kit_id: ${kit_id}\nbroker:\n  url: none\nstate_dir: ${dir}\nruntime_dir: ${dir}\nservice:\n  listen: 127.0.0.1:${port}\n${more}`;
  const config = await readText(dir, text);
  if (!config.broker) throw new Error('the section is there');
  const lines: string[] = [];
  const out = { write: (line: string) => lines.push(line) > 0 };
  const log = createLog({ level: 'info', out, readable: false });
  const app = await startApp(config, {
    log,
    clock: systemClock({ evidence: vouched }),
    version: '0.0.0',
    broker: config.broker,
  });
  app.startDrivers();
  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => (stopped ??= app.stop());
  onTestFinished(stop);
  return { app, stop, log: () => lines.map((line) => logLine.parse(JSON.parse(line))) };
}

function client({ app }: Daemon) {
  const key = readFileSync(app.service?.key_file ?? '', 'utf8').trim();
  return async (path: string, body?: object) => {
    const response = await fetch(`${app.service?.url()}${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { 'x-api-key': key, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? null : z.json().parse(JSON.parse(text)) };
  };
}

it(
  'an address that is taken is named in the log once, and tried again until it is free; the kit works meanwhile',
  { timeout: 60_000 },
  async () => {
    const dir = await testDirectory();
    const other = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void other.close());
    await once(other, 'listening');
    const at = other.address();
    const port = typeof at === 'object' && at ? at.port : 0;
    const daemon = await startDaemon(dir, port);
    expect(daemon.app.service?.url()).toBeUndefined();
    const { uplink, degraded } = await daemon.app.local.report();
    expect(uplink.broker).toBe('none');
    const off = texts.service_off('').split(':')[0] ?? '';
    expect(degraded).toContainEqual(expect.stringContaining(off));
    expect(daemon.app.vitals.summary()).toContain(off);
    const errors = daemon.log().filter(({ level }) => level === 'error');
    expect(errors).toMatchObject([
      {
        msg: texts.service_failed,
        reason: expect.stringContaining(`port ${port}`) as unknown,
      },
    ]);
    expect(JSON.stringify(errors)).toContain('choose another service.listen');
    other.close();
    await eventually('the service runs', () => daemon.app.service?.url() !== undefined);
    const kits = z.array(z.looseObject({ id: z.string(), online: z.boolean() }));
    await eventually('the kit is online', async () => {
      const [first] = kits.parse((await client(daemon)('/api/kits')).body);
      return first?.id === kit_id && first.online;
    });
    expect(daemon.log().filter(({ level }) => level === 'error')).toHaveLength(1);
    expect(daemon.app.vitals.summary()).not.toContain(off);
  },
);

it('keys, partner assets and tasks survive a restart of the daemon', { timeout: 60_000 }, async () => {
  const dir = await testDirectory();
  const first = await startDaemon(dir, 0);
  const key_file = join(dir, 'service-key');
  const order = { kit_id, task_id: '3f8c1a52-6d1e-4b7a-9c3d-1f2e3d4c5b6a', command_name: 'beep' };
  const key = readFileSync(key_file, 'utf8');
  expect(statSync(key_file).mode & 0o777).toBe(0o600);
  expect(JSON.stringify(first.log())).not.toContain(key.trim());
  const answer = await client(first)(`${kit}/assets`, { name: 'Truck', type: 'vehicle' });
  expect(answer.status).toBe(201);
  const asset_id = made.parse(answer.body).id;
  const fix = { lat: 47.5, lon: 8.5, alt_m: 400, bearing: 10 };
  expect((await client(first)(`${kit}/assets/${asset_id}/location`, fix)).status).toBe(204);
  expect(statSync(join(dir, 'service.db')).mode & 0o777).toBe(0o600);
  await first.stop();
  const store = sqlStore(openSqlite(join(dir, 'service.db'), { keeping: 'memory' }));
  const requester = { requested_by: kit_id, requested_by_name: 'test' };
  const created_ms = Date.now();
  const when = { created_ms, due_ms: created_ms + 60_000 };
  await store.addTask({ ...order, ...requester, ...when, asset_id, payload: {} });
  await store.close();
  const second = await startDaemon(dir, 0);
  expect(readFileSync(key_file, 'utf8')).toBe(key);
  const ask = client(second);
  expect((await ask(`${kit}/assets/${asset_id}`)).body).toMatchObject({
    name: 'Truck',
    protocol: 'partner',
    lat: 47.5,
  });
  expect((await ask(`${kit}/assets/${asset_id}/telemetry`)).body).toMatchObject({
    gps: { lat: 47.5, lon: 8.5, alt_m: 400, bearing: 10, source: 'api' },
  });
  expect((await ask(`${kit}/tasks`)).body).toMatchObject({
    tasks: [{ id: order.task_id, status: 'pending' }],
  });
});

it('counts what it publishes for partner assets as received, so that nothing seems to be missing', async () => {
  const dir = await testDirectory();
  const daemon = await startDaemon(dir, 0);
  const ask = client(daemon);
  const received = async () => {
    const { epochs } = kept.parse((await ask(`${kit}/completeness`)).body);
    return { received: epochs[0]?.received ?? 0, missing: epochs.flatMap(({ missing }) => missing) };
  };
  await eventually('the first messages are stored', async () => (await received()).received > 0);
  const before = await received();
  const { id } = made.parse((await ask(`${kit}/assets`, { name: 'Truck', type: 'vehicle' })).body);
  expect((await ask(`${kit}/assets/${id}/location`, { lat: 47.5, lon: 8.5 })).status).toBe(204);
  await eventually(
    'asset and fix are counted',
    async () => (await received()).received >= before.received + 2,
  );
  expect((await received()).missing).toEqual([]);
  const page = await ask(`${kit}/history?feed=gps`);
  expect(z.object({ messages: z.array(z.json()) }).parse(page.body).messages).toHaveLength(1);
});

it('a database that cannot be read costs a line when partner assets are to be announced, and not the daemon', async () => {
  const log = recordingLog();
  const outbox = { append: () => ({ epoch: 1, seq: 1 }) };
  const partners = async (): Promise<never> => {
    throw new StorageUnavailable('disk I/O error');
  };
  await new PartnerPublisher({ outbox, log, partners }).announce();
  expect(log.at('warn')).toEqual([texts.partner_failed]);
});

it('serves TLS with the configured certificate', async () => {
  const dir = await testDirectory();
  const { ca, server } = await makeCertificates(dir, 'machine 7');
  const tls = `  tls: { cert_file: ${server.cert}, key_file: ${server.key}, client_ca_file: ${ca}, client_certificates: optional }\n`;
  const daemon = await startDaemon(dir, 0, tls);
  const asked = request(`${daemon.app.service?.url()}/ready`, { ca: readFileSync(ca), agent: false });
  asked.end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  response.resume();
  expect(response.statusCode).toBe(200);
});

it(
  'history survives a restart of the daemon, and `history: off` keeps none',
  { timeout: 60_000 },
  async () => {
    const pageOf = z.object({ messages: z.array(z.unknown()) });
    await withDirectory(async (dir) => {
      const first = await startDaemon(dir, 0);
      let before: readonly unknown[] = [];
      await eventually('something is in the history', async () => {
        before = pageOf.parse((await client(first)(`${kit}/history`)).body).messages;
        return before.length > 0;
      });
      await first.stop();
      const second = await startDaemon(dir, 0);
      const { messages } = pageOf.parse((await client(second)(`${kit}/history?limit=5000`)).body);
      expect(messages).toEqual(expect.arrayContaining([...before]));
      await second.stop();
      expect(existsSync(join(dir, 'history.db'))).toBe(true);
    });
    const dir = await testDirectory();
    const daemon = await startDaemon(dir, 0, '  history: off\n');
    await eventually('the kit is online', async () => (await client(daemon)(kit)).status === 200);
    expect((await client(daemon)(`${kit}/history`)).body).toEqual({ messages: [], next: null });
    expect((await client(daemon)(`${kit}/completeness`)).body).toMatchObject({ since: null });
    expect(existsSync(join(dir, 'history.db'))).toBe(false);
  },
);

it('files of a later version stay as they are, and the kit works without its service until that version is back', async () => {
  const dir = await testDirectory();
  const files = ['service.db', 'history.db'].map((name) => join(dir, name));
  const off = texts.service_off('').split(':')[0] ?? '';
  const expectOff = async ({ app }: Daemon): Promise<void> => {
    await eventually('the service is off', () => app.service?.url() === undefined);
    const { degraded } = await app.local.report();
    expect(degraded).toContainEqual(expect.stringContaining(off));
    expect(files.filter((file) => !existsSync(file))).toEqual([]);
    expect(existsSync(join(dir, 'history.db.damaged'))).toBe(false);
  };
  const daemon = await startDaemon(dir, 0);
  expect(daemon.app.service?.url()).toBeDefined();
  for (const file of files) {
    const later = new Sqlite(file);
    later.pragma(`user_version = ${schema.version + 1}`);
    later.close();
  }
  await expectOff(daemon);
  await daemon.stop();
  const again = await startDaemon(dir, 0);
  await expectOff(again);
});

it('serves the picture that a camera took at an alarm, with the alarm that it belongs to', async () => {
  const dir = await testDirectory();
  const camera = await startFakeCamera({ auth: 'none' });
  onTestFinished(async () => camera.stop());
  const driver = `drivers:\n  - driver: onvif\n    options:\n      cameras: [{ name: Gate, host: 127.0.0.1, port: ${camera.port}, alarm_picture: true }]\n`;
  const pulled = camera.next('PullMessages');
  const daemon = await startDaemon(dir, 0, driver);
  const ask = client(daemon);
  await pulled;
  const listed = z.object({ assets: z.array(z.looseObject({ id: z.string() })) });
  const assets = async () => listed.parse((await ask(`${kit}/assets`)).body).assets;
  await eventually('the camera is listed', async () => (await assets()).length === 1);
  const path = `${kit}/assets/${(await assets())[0]?.id}`;
  expect((await ask(`${path}/alarm-picture.jpg`)).status).toBe(404);
  camera.events.set('tns1:VideoSource/MotionAlarm', 'State', 'true');
  const feeds = z.looseObject({
    motion: z.looseObject({ timestamp: z.string() }),
    alarm_picture: z.looseObject({ alarms: z.array(z.json()), jpeg: z.string() }),
  });
  const telemetry = async () => feeds.safeParse((await ask(`${path}/telemetry`)).body).data;
  await eventually('the picture is there', async () => (await telemetry()) !== undefined);
  const { motion, alarm_picture } = feeds.parse((await ask(`${path}/telemetry`)).body);
  expect(alarm_picture.alarms).toEqual([{ feed: 'motion', timestamp: motion.timestamp }]);
  const key = readFileSync(daemon.app.service?.key_file ?? '', 'utf8').trim();
  const url = `${daemon.app.service?.url()}${path}/alarm-picture.jpg`;
  const answer = await fetch(url, { headers: { 'x-api-key': key } });
  expect(answer.headers.get('content-type')).toBe('image/jpeg');
  expect(Buffer.from(await answer.arrayBuffer()).equals(samplePicture())).toBe(true);
  const page = await ask(`${kit}/history?feed=alarm_picture`);
  expect(z.object({ messages: z.array(z.json()) }).parse(page.body).messages).toHaveLength(1);
});

it('serves pictures of a camera to keys that may read the kit, and names why there is none', async () => {
  const dir = await testDirectory();
  const camera = await startFakeCamera({ auth: 'none' });
  onTestFinished(async () => camera.stop());
  const driver = `drivers:\n  - driver: onvif\n    options:\n      cameras: [{ name: Gate, host: 127.0.0.1, port: ${camera.port} }]\n`;
  const daemon = await startDaemon(dir, 0, driver);
  const key = readFileSync(daemon.app.service?.key_file ?? '', 'utf8').trim();
  const get = async (path: string, headers: Record<string, string> = { 'x-api-key': key }) =>
    fetch(`${daemon.app.service?.url()}${path}`, { headers });
  const listed = z.object({ assets: z.array(z.looseObject({ id: z.string(), status: z.string() })) });
  const cameraAsset = async () =>
    listed.parse(await (await get(`${kit}/assets`)).json()).assets.find(({ status }) => status === 'online');
  await eventually('the camera is online', async () => (await cameraAsset()) !== undefined);
  const path = `${kit}/assets/${(await cameraAsset())?.id}/snapshot.jpg`;
  const answer = await get(path);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('image/jpeg');
  expect(Date.parse(answer.headers.get('last-modified') ?? '')).toBeGreaterThan(Date.now() - 60_000);
  expect(Buffer.from(await answer.arrayBuffer()).equals(samplePicture())).toBe(true);
  const again = await get(`${path}?max_age_s=3600`, {
    'x-api-key': key,
    'if-none-match': answer.headers.get('etag') ?? '',
  });
  expect(again.status).toBe(304);
  expect(camera.count('GET')).toBe(1);
  expect((await get(path, {})).status).toBe(401);
  expect((await get(`${path}?max_age_s=-1`)).status).toBe(400);
  expect((await get(`${kit}/assets/${kit_id}/snapshot.jpg`)).status).toBe(404);
  camera.file = { type: 'text/html', bytes: Buffer.from('<html>') };
  await eventually('the gap is over', async () => (await get(`${path}?max_age_s=0`)).status === 503);
});
