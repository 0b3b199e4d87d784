/** Two services on one PostgreSQL that share one subscription, against a real broker, and a kit that this test plays. */
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connectAsync, type MqttClient } from 'mqtt';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { z } from 'zod';
import { writeEnvelope } from '../../../src/contract/envelope.ts';
import type { JsonObject } from '../../../src/contract/json.ts';
import { channels, downFilter, parseDown, upTopic } from '../../../src/contract/topics.ts';
import { whepRequest } from '../../../src/contract/whep.ts';
import { fleetServerFrame, serverFrame, type ServerFrame } from '../../../src/cloud/api/frames.ts';
import { type Broker, startMosquitto } from '../../support/brokers/broker.ts';
import { type Child, startChild } from '../../support/child.ts';
import { asset_id, samples } from '../../support/contract-samples.ts';
import { eventually } from '../../support/eventually.ts';
import { command_file } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';
import { type Postgres, startPostgres } from '../../support/database/postgres.ts';
import { makeDirectory } from '../../support/temporary.ts';
import { rm } from 'node:fs/promises';
import { freePort } from '../../support/ports.ts';

const command = 'goto_waypoint';
const alarm_names = Array.from('abcdefghijklmnopqrstuvwxyz');
const started = z.object({ id: z.uuid(), status: z.string() });

interface Replica {
  readonly child: Child;
  readonly url: string;
}

describe.skipIf(peerMissing('mosquitto', 'postgres', 'initdb', 'setpriv'))('replicas of the service', () => {
  let dir: string;
  let postgres: Postgres;
  let broker: Broker;
  let database: string;
  let key: string;
  let kit: PlayedKit;
  let replicas: Replica[] = [];
  const sockets: WebSocket[] = [];

  beforeAll(async () => {
    dir = await makeDirectory();
    postgres = await startPostgres();
  });
  afterAll(async () => {
    await postgres?.stop();
    await rm(dir, { recursive: true, force: true, maxRetries: 3 });
  });
  beforeEach(async () => {
    broker = await startMosquitto();
    database = await postgres.newDatabase(`d${randomUUID().replaceAll('-', '')}`);
    key = await newKey();
    replicas = await Promise.all([startReplica(), startReplica()]);
    kit = await playKit(broker.url);
  });
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.terminate();
    await kit?.leave();
    for (const { child } of replicas.splice(0)) await child.end('SIGKILL');
    await broker?.stop();
  });

  /** Makes a configuration that names the password of the database, and a key with it. */
  async function newKey(): Promise<string> {
    const config = await configOf(database, 1);
    const words = ['service', 'key', 'add', 'test', '--all-kits', '--config', config];
    return (await startChild([command_file, ...words]).ended).stdout.trim();
  }

  async function configOf(at: string, port: number): Promise<string> {
    const config = join(dir, `${port}.yaml`);
    const database_password_file = join(dir, 'postgres-password');
    await writeFile(database_password_file, `${postgres.password}\n`, { mode: 0o600 });
    const listen = `127.0.0.1:${port}`;
    const broker_section = { url: broker.url };
    const files = { url: `http://${listen}`, dir: join(dir, 'files') };
    const text = {
      broker: broker_section,
      database: at,
      database_password_file,
      share: 'all',
      listen,
      files,
    };
    await writeFile(config, JSON.stringify(text));
    return config;
  }

  async function startReplica(at: string = database): Promise<Replica> {
    const port = await freePort();
    const config = await configOf(at, port);
    const listen = `127.0.0.1:${port}`;
    const child = startChild([command_file, 'service', '--config', config]);
    await child.printed(/service connected to the broker/u);
    return { child, url: `http://${listen}` };
  }

  async function ask(replica: Replica | undefined, path: string, body?: object): Promise<unknown> {
    const response = await fetch(`${replica?.url}${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { 'x-api-key': key, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    return response.status === 204 ? undefined : response.json();
  }

  /** Frames of a socket on this replica, from the snapshot on. */
  async function watch(replica: Replica | undefined): Promise<ServerFrame[]> {
    const address = `${replica?.url.replace('http', 'ws')}/api/kits/${kit.kit_id}/ws`;
    const socket = new WebSocket(address, ['kit.v1'], { headers: { 'x-api-key': key } });
    sockets.push(socket);
    const frames: ServerFrame[] = [];
    socket.on('open', () => socket.send('{"type":"subscribe","assets":"*"}'));
    socket.on('message', (raw: Buffer) => frames.push(serverFrame.parse(JSON.parse(raw.toString('utf8')))));
    await eventually('the snapshot', () => frames.length > 0);
    return frames;
  }

  /** The newest frame of each alarm with a name. */
  async function watchAlarms(replica: Replica) {
    const socket = new WebSocket(`${replica.url.replace('http', 'ws')}/api/ws`, {
      headers: { 'x-api-key': key },
    });
    sockets.push(socket);
    const found = new Map<string, { id: string; state: string; at_ms: number; files: readonly string[] }>();
    const subscribed = Promise.withResolvers<undefined>();
    socket.on('open', () => socket.send('{"type":"subscribe","alarms":true}'));
    socket.on('message', (raw: Buffer) => {
      const frame = fleetServerFrame.parse(JSON.parse(raw.toString('utf8')));
      if (frame.type !== 'alarms') return;
      subscribed.resolve(undefined);
      for (const { id, state, subject = '', files = [] } of frame.alarms)
        found.set(subject, { id, state, files, at_ms: found.get(subject)?.at_ms ?? performance.now() });
    });
    await subscribed.promise;
    return found;
  }

  const isKnown = async (replica: Replica | undefined): Promise<boolean> =>
    JSON.stringify(await ask(replica, `/api/kits/${kit.kit_id}/assets/${asset_id}/commands`)).includes(
      command,
    );

  it('store each message of a kit once, and the sockets of both receive all messages', async () => {
    await kit.introduce();
    for (const replica of replicas) await eventually('the kit is known', async () => isKnown(replica));
    const [mine, theirs] = [await watch(replicas[0]), await watch(replicas[1])];
    const before = kit.counted();
    for (let n = 1; n <= 40; n += 1) await kit.move(n);
    const hears = (frames: readonly ServerFrame[]): boolean =>
      frames.some((each) => each.type === 'feed' && JSON.stringify(each.message).includes('"lat":40,'));
    await eventually('both hear the last position', () => hears(mine) && hears(theirs));
    await eventually('everything is counted', async () => {
      const { received } = z
        .object({ received: z.int() })
        .parse(await ask(replicas[0], `/api/kits/${kit.kit_id}/queue`));
      return received === before + 40;
    });
    const feeds = z.object({ gps: z.object({ lat: z.number() }) });
    const answers = await Promise.all(
      replicas.map(async (each) => ask(each, `/api/kits/${kit.kit_id}/assets/${asset_id}/telemetry`)),
    );
    expect(answers.map((each) => feeds.parse(each).gps.lat)).toEqual([40, 40]);
  });

  it('dispatch a task once, and the other one receives its steps and pushed locations', async () => {
    await kit.introduce();
    for (const replica of replicas) await eventually('the kit is known', async () => isKnown(replica));
    const theirs = await watch(replicas[1]);
    const path = `/api/kits/${kit.kit_id}/assets`;
    const { id } = started.parse(
      await ask(replicas[0], `${path}/${asset_id}/commands/${command}`, { payload: { lat: 1 } }),
    );
    await eventually('the kit has it', () => kit.tasks.length > 0);
    await kit.report(id, 'running', 1);
    await kit.report(id, 'completed', 2);
    const steps = (): readonly string[] =>
      theirs.flatMap((each) => (each.type === 'task' && each.task.id === id ? [each.task.status] : []));
    await eventually('the other one says completed', () => steps().at(-1) === 'completed');
    expect(kit.tasks).toEqual([id]);

    const partner = started.parse(await ask(replicas[0], path, { name: 'Truck', type: 'vehicle' }));
    await ask(replicas[0], `${path}/${partner.id}/location`, { lat: 47.4, lon: 8.5 });
    await eventually('the fix is heard', () =>
      theirs.some((each) => each.type === 'feed' && each.asset_id === partner.id),
    );
  });

  it('answer a viewer whose answer came to the other one', async () => {
    await kit.introduce();
    for (const replica of replicas) await eventually('the kit is known', async () => isKnown(replica));
    const watched = async (n: number): Promise<string> => {
      const response = await fetch(`${replicas[0]?.url}/api/kits/${kit.kit_id}/assets/${asset_id}/whep`, {
        method: 'POST',
        headers: { 'x-api-key': key, 'content-type': 'application/sdp' },
        body: `v=0\r\n${n}\r\n`,
      });
      return `${response.status} ${await response.text()}`;
    };
    // The broker gives each message of the shared subscription to one of the two.
    const all = await Promise.all(Array.from({ length: 12 }, async (_, n) => watched(n)));
    expect(all).toEqual(Array.from({ length: 12 }, (_, n) => `201 v=0\r\n${n}\r\nanswered\r\n`));
  });

  it('send each alarm to the fleet sockets of both, and what a client of one notes on it', async () => {
    await kit.introduce();
    for (const replica of replicas) await eventually('the kit is known', async () => isKnown(replica));
    const seen = await Promise.all(replicas.map(watchAlarms));
    const begun_ms = new Map<string, number>();
    for (const name of alarm_names) {
      begun_ms.set(name, performance.now());
      await kit.alarm(name);
    }
    await eventually('both have them', () =>
      seen.every((alarms) => alarm_names.every((name) => alarms.has(name))),
    );
    const waits_ms = seen.flatMap((alarms) =>
      alarm_names.map((name) => (alarms.get(name)?.at_ms ?? 0) - (begun_ms.get(name) ?? 0)),
    );
    console.log(
      `from publishing to the frame: ${Math.max(...waits_ms).toFixed(0)} ms at most of ${waits_ms.length}`,
    );
    const [first = ''] = alarm_names;
    const path = `/api/kits/${kit.kit_id}/alarms/${seen[0]?.get(first)?.id}`;
    const response = await fetch(`${replicas[0]?.url}${path}`, {
      method: 'PATCH',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: '{"acknowledged":true}',
    });
    expect(response.status).toBe(200);
    await eventually('the other one has it', () => seen[1]?.get(first)?.state === 'acknowledged');
  });

  it('show files on the sockets of both, the alarms that they show on those of the fleet, and that they are deleted', async () => {
    await kit.introduce();
    for (const replica of replicas) await eventually('the kit is known', async () => isKnown(replica));
    const [mine, theirs] = [await watch(replicas[0]), await watch(replicas[1])];
    const fleets = await Promise.all(replicas.map(watchAlarms));
    const timestamp = new Date().toISOString();
    const id = randomUUID();
    // The broker gives them to the replicas in turn: either may be stored first.
    await kit.alarm('gate', timestamp);
    await kit.file(id, { alarms: [{ feed: 'relay_fault', timestamp }] });
    const isShown = (state: string): boolean =>
      [mine, theirs].every((frames) => {
        const last = frames.findLast((each) => each.type === 'file' && each.file.id === id);
        return last?.type === 'file' && last.file.state === state;
      });
    await eventually('both show it', () => isShown('at_kit'));
    await eventually('both show it at the alarm', () =>
      fleets.every((alarms) => alarms.get('gate')?.files.includes(id) === true),
    );
    const path = `${replicas[0]?.url}/api/kits/${kit.kit_id}/files/${id}`;
    expect((await fetch(path, { method: 'DELETE', headers: { 'x-api-key': key } })).status).toBe(204);
    await eventually('both show that it is gone', () => isShown('dropped'));
  });

  it('continue with one when the other is killed, and a task of the killed one ends', async () => {
    await kit.introduce();
    for (const replica of replicas) await eventually('the kit is known', async () => isKnown(replica));
    const path = `/api/kits/${kit.kit_id}/assets/${asset_id}/commands/${command}`;
    const { id } = started.parse(await ask(replicas[0], path, { payload: { lat: 1 } }));
    await eventually('the kit has it', () => kit.tasks.length > 0);
    await replicas[0]?.child.end('SIGKILL');
    await kit.report(id, 'running', 1);
    await kit.report(id, 'completed', 2);
    await kit.move(7);
    const task = z.object({ status: z.string() });
    await eventually('the other one knows', async () => {
      const now = task.parse(await ask(replicas[1], `/api/kits/${kit.kit_id}/tasks/${id}`));
      return now.status === 'completed';
    });
  });

  it('begin with an empty database from what the broker has retained, and ask each kit for the rest', async () => {
    await kit.introduce();
    await eventually('the kit is known', async () => isKnown(replicas[0]));
    kit.syncs.length = 0;
    for (const { child } of replicas.splice(0)) await child.end('SIGTERM');
    database = await postgres.newDatabase(`d${randomUUID().replaceAll('-', '')}`);
    key = await newKey();
    replicas.push(await startReplica());
    await eventually('the asset is known again', async () => isKnown(replicas[0]));
    await eventually('the kit is asked', () => kit.syncs.length > 0);
    await kit.telemetry();
    await eventually('its telemetry too', async () => {
      const answer = JSON.stringify(await ask(replicas[0], `/api/kits/${kit.kit_id}/telemetry`));
      return answer.includes('"battery":82');
    });
  });
});

interface PlayedKit {
  readonly kit_id: string;
  /** Ids of tasks that were dispatched to it, in the order in which they came. */
  readonly tasks: readonly string[];
  readonly syncs: string[];
  /** Messages so far that count. */
  counted(): number;
  introduce(): Promise<void>;
  telemetry(): Promise<void>;
  move(lat: number): Promise<void>;
  alarm(name: string, timestamp?: string): Promise<void>;
  file(id: string, about: JsonObject): Promise<void>;
  report(task_id: string, status: string, revision: number): Promise<void>;
  leave(): Promise<void>;
}

async function playKit(url: string): Promise<PlayedKit> {
  const kit_id = randomUUID();
  const client: MqttClient = await connectAsync(url, { clientId: kit_id, protocolVersion: 5 }, false);
  const tasks: string[] = [];
  const syncs: string[] = [];
  client.on('message', (topic, payload) => {
    const down = parseDown(kit_id, topic);
    if (down?.kind === 'whep') {
      const { id, offer } = whepRequest.parse(JSON.parse(payload.toString('utf8')));
      const answer = JSON.stringify({ answer: `${offer}answered\r\n` });
      client.publish(upTopic(kit_id, channels.whep(id)), answer, { qos: 1 });
    }
    if (down?.kind === 'task') tasks.push(down.task_id);
    if (down?.kind === 'sync') syncs.push(topic);
  });
  await client.subscribeAsync(downFilter(kit_id), { qos: 1 });
  let seq = 0;
  const publish = async (channel: string, data: JsonObject, retain: boolean): Promise<void> => {
    seq += 1;
    const text = writeEnvelope({ epoch: 17, seq, time_ms: Date.now() + seq }, JSON.stringify(data));
    await client.publishAsync(upTopic(kit_id, channel), text, { qos: 1, retain });
  };
  const telemetry = async (): Promise<void> =>
    publish(channels.telemetry, samples['kitTelemetry'] ?? {}, false);
  return {
    kit_id,
    tasks,
    syncs,
    counted: () => seq - 1,
    telemetry,
    async introduce() {
      await publish(channels.state, samples['kitState'] ?? {}, true);
      const whep_url = 'http://192.168.1.1:8889/cam/whep';
      await publish(channels.asset(asset_id), { ...samples['announcement'], whep_url }, true);
      await publish(channels.commands(asset_id), samples['commandList'] ?? {}, true);
      await telemetry();
    },
    move: async (lat) => publish(channels.feed(asset_id, 'gps'), { lat, lon: 8.5, alt_m: null }, false),
    alarm: async (name, timestamp = new Date().toISOString()) =>
      publish(channels.event(asset_id, 'relay_fault'), { detected: true, name, timestamp }, false),
    file: async (id, about) =>
      publish(
        channels.file(id),
        { ...samples['fileReport'], at: new Date().toISOString(), id, ...about },
        false,
      ),
    report: async (task_id, status, revision) =>
      publish(
        channels.task(task_id),
        { task_id, asset_id, command_name: command, status, revision, result: {} },
        false,
      ),
    leave: async () => client.endAsync(true),
  };
}
