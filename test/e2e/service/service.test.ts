/** The service on its own against a real broker: what it acknowledges and when, what it tells the kits, and tasks that reach none. */
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { connectAsync, type MqttClient } from 'mqtt';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/contract/json.ts';
import { channels, upTopic } from '../../../src/contract/topics.ts';
import { pageOnDemand } from '../../../src/cloud/http/page/page-files.ts';
import { makeKey } from '../../../src/cloud/principal.ts';
import { scopes } from '../../../src/cloud/scopes.ts';
import { startStandalone } from '../../../src/cloud/standalone.ts';
import type { RunningService } from '../../../src/cloud/start.ts';
import { openThreadStore } from '../../../src/cloud/store/thread-store.ts';
import { type Broker, startMosquitto } from '../../support/brokers/broker.ts';
import { asset_id, kit_id, samples } from '../../support/contract-samples.ts';
import { eventually } from '../../support/eventually.ts';
import { peerMissing } from '../../support/peers.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { makeDirectory } from '../../support/temporary.ts';
import { brokerOptions } from '../../support/brokers/broker-options.ts';

describe.skipIf(peerMissing('mosquitto'))('the service against a broker', () => {
  let broker: Broker;
  let file: string;
  let service: RunningService;
  let kit: MqttClient;
  let seq = 0;
  const down: { topic: string; text: string; retain: boolean }[] = [];
  const log = recordingLog();
  const client_id = `service-${randomUUID()}`;
  const { text: key, key: stored } = makeKey(
    { label: 'test', scopes: [...scopes], kits: '*', expires_ms: null },
    Date.now(),
  );

  async function start(): Promise<void> {
    const store = await openThreadStore(file);
    if ((await store.keys()).length === 0) await store.addKey(stored);
    service = await startStandalone({
      store,
      broker: brokerOptions(broker.url, { username: 'cloud', protocol: 'auto' }),
      client_id,
      listen: { host: '127.0.0.1', port: 0 },
      hosts: [],
      media_origins: [],
      page: pageOnDemand(),
      version: '0',
      log,
    });
    await eventually('connected', async () => (await fetch(`${service.url}/ready`)).status === 200);
  }

  beforeEach(async () => {
    broker = await startMosquitto({ conf: ['log_type debug'] });
    file = join(await makeDirectory(), 'service.db');
    down.length = 0;
    await start();
    kit = await connectAsync(broker.url, { protocolVersion: 5, clientId: kit_id, username: kit_id });
    kit.on('message', (topic, payload, { retain }) => {
      down.push({ topic: topic.slice(topic.indexOf('/down/') + 6), text: payload.toString(), retain });
    });
    await kit.subscribeAsync(`k1/${kit_id}/down/#`, { qos: 1, rap: true });
  });
  afterEach(async () => {
    await kit.endAsync(true);
    await service.stop();
    await broker.stop();
    await rm(dirname(file), { recursive: true, force: true });
  });

  async function publish(channel: string, data: JsonObject, epoch = 1): Promise<void> {
    seq += 1;
    const message = { time: new Date().toISOString(), epoch, seq, data };
    await kit.publishAsync(upTopic(kit_id, channel), JSON.stringify(message), { qos: 1 });
  }

  async function ask(path: string, body?: object) {
    const response = await fetch(service.url + path, {
      method: body ? 'POST' : 'GET',
      headers: { 'x-api-key': key, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const said = (await response.json()) as { id: string; status: string; result: { error: string } }[];
    return { status: response.status, list: said, one: said as unknown as (typeof said)[number] };
  }

  const battery = async (): Promise<unknown> => {
    const response = await fetch(`${service.url}/api/kits/${kit_id}/battery`, {
      headers: { 'x-api-key': key },
    });
    return ((await response.json()) as { battery: number }).battery;
  };

  it('acknowledges a message to the broker only once it is on disk', async () => {
    const puback = new RegExp(`Received PUBACK from ${client_id}`, 'u');
    const disk = new Database(file);
    disk.exec('BEGIN IMMEDIATE');
    try {
      await publish(channels.telemetry, { battery: 41 });
      await broker.logged(new RegExp(`Sending PUBLISH to ${client_id}`, 'u'));
      // The service has had its turns.
      for (let n = 0; n < 3; n += 1) await battery();
      expect(broker.log()).not.toMatch(puback);
    } finally {
      disk.exec('ROLLBACK');
      disk.close();
    }
    await broker.logged(puback);
    expect(await battery()).toBe(41);
  });

  it('receives messages queued while it was stopped, each once', async () => {
    await publish(channels.telemetry, { battery: 50 });
    await eventually('stored', async () => (await battery()) === 50);
    await service.stop();
    for (let n = 60; n < 70; n += 1) await publish(channels.telemetry, { battery: n });
    await start();
    await eventually('the newest', async () => (await battery()) === 69);
    const [stored_kit] = await service.store.kits([kit_id]);
    expect(stored_kit?.counts).toMatchObject({ received: 11, duplicates: 0, refused: 0 });
  });

  it('asks a kit that it has never received anything of for everything, once, and tells each epoch what is stored', async () => {
    await publish(channels.telemetry, { battery: 50 }, 17);
    await publish(channels.telemetry, { battery: 51 }, 17);
    await eventually('the ack', () => down.some(({ topic }) => topic === 'ack'));
    expect(down.filter(({ topic }) => topic === 'sync')).toEqual([
      { topic: 'sync', text: '{}', retain: false },
    ]);
    const last = seq;
    const newest = down.findLast(({ topic }) => topic === 'ack');
    expect(newest).toEqual({
      topic: 'ack',
      text: JSON.stringify({ epoch: 17, ranges: [[last - 1, last]] }),
      retain: true,
    });
    await publish(channels.telemetry, { battery: 40 }, 16);
    await eventually('the ack of the older epoch', () =>
      down.some(({ text }) => text.includes('"epoch":16')),
    );
    expect(down.find(({ text }) => text.includes('"epoch":16'))).toMatchObject({ retain: false });
    expect(down.filter(({ topic }) => topic === 'sync')).toHaveLength(1);
  });

  it('dispatches a task once, not retained, as the contract has it', async () => {
    await announce();
    const { one } = await ask(order, { payload: samples['taskDispatch']?.['payload'] ?? {} });
    await eventually('the dispatch', () => down.some(({ topic }) => topic === `task/${one.id}`));
    const dispatches = down.filter(({ topic }) => topic.startsWith('task/'));
    expect(dispatches).toHaveLength(1);
    expect(dispatches[0]?.retain).toBe(false);
    expect(JSON.parse(dispatches[0]?.text ?? '')).toMatchObject({
      task_id: one.id,
      asset_id,
      command_name: 'goto_waypoint',
      created_at: expect.stringMatching(/Z$/u) as unknown,
    });
    await fetch(`${service.url}/api/kits/${kit_id}/tasks/${one.id}/cancel`, {
      method: 'POST',
      headers: { 'x-api-key': key },
    });
    await eventually('the cancel', () => down.some(({ topic }) => topic === `task/${one.id}/cancel`));
  });

  it('fails a task that no kit can have received, and reports why', async () => {
    await announce();
    await kit.endAsync();
    const { one } = await ask(order, { payload: samples['taskDispatch']?.['payload'] ?? {} });
    await eventually(
      'failed',
      async () => (await ask(`/api/kits/${kit_id}/tasks/${one.id}`)).one.status === 'failed',
    );
    const { one: task } = await ask(`/api/kits/${kit_id}/tasks/${one.id}`);
    expect(task.result.error).toBe('not sent to the kit: the kit is not connected to the broker');
  });

  it('fails a task immediately while the broker is unreachable, is not ready then, and recovers', async () => {
    await announce();
    await broker.kill();
    await eventually('not ready', async () => (await fetch(`${service.url}/ready`)).status === 503);
    const { status, one } = await ask(order, { payload: samples['taskDispatch']?.['payload'] ?? {} });
    expect(status).toBe(202);
    await eventually(
      'failed',
      async () => (await ask(`/api/kits/${kit_id}/tasks/${one.id}`)).one.status === 'failed',
    );
    await broker.start();
    await eventually('ready', async () => (await fetch(`${service.url}/ready`)).status === 200);
    expect(
      log.at('warn').filter((sentence) => sentence.includes('broker connection of the service failed')),
    ).toHaveLength(1);
  });

  const order = `/api/kits/${kit_id}/assets/${asset_id}/commands/goto_waypoint`;
  async function announce(): Promise<void> {
    await publish(channels.asset(asset_id), samples['announcement'] ?? {});
    await publish(channels.commands(asset_id), samples['commandList'] ?? {});
    await eventually('announced', async () => {
      const path = `/api/kits/${kit_id}/assets/${asset_id}/commands`;
      return JSON.stringify((await ask(path)).list).includes('goto_waypoint');
    });
  }
});
