/** The service on a quorum queue of a real RabbitMQ, to which kits publish by MQTT. */
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { connect } from 'amqplib';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import Sqlite from 'better-sqlite3';
import { z } from 'zod';
import { openSqlite } from '../../../src/cloud/sql/sqlite.ts';
import { readStored } from '../../../src/cloud/stored/received/received-numbers.ts';
import { texts } from '../../../src/cloud/texts.ts';
import { sqlStore } from '../../../src/cloud/store/sql-store.ts';
import { epoch, PublishingKit } from '../../faults/support/published.ts';
import { startRabbitmq } from '../../support/brokers/rabbitmq.ts';
import { type Child, startChild } from '../../support/child.ts';
import { asset_id, samples } from '../../support/contract-samples.ts';
import { eventually } from '../../support/eventually.ts';
import { command_file } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';
import { makeDirectory } from '../../support/temporary.ts';
import { freePort } from '../../support/ports.ts';

const patience_ms = 90_000;
/** The server has 300 s to start. */
const start_patience_ms = 330_000;
const counted = z.object({ received: z.int() });

describe.skipIf(peerMissing('rabbitmq-server', 'epmd'))('the service on a queue of RabbitMQ', () => {
  let rabbit: Awaited<ReturnType<typeof startRabbitmq>>;
  let dir: string;
  let child: Child | undefined;
  let listen = '';
  const kits: PublishingKit[] = [];

  beforeAll(async () => {
    rabbit = await startRabbitmq();
    dir = await makeDirectory();
    await writeFile(join(dir, 'password'), 'guest\n', { mode: 0o600 });
    await writeFile(join(dir, 'wrong'), 'other\n', { mode: 0o600 });
  }, start_patience_ms);
  afterEach(async () => {
    for (const kit of kits.splice(0)) kit.leave();
    await child?.end('SIGKILL');
    child = undefined;
  });
  afterAll(async () => rabbit?.stop());

  async function configured(more: object = {}): Promise<string> {
    const config = join(dir, 'service.yaml');
    listen = `127.0.0.1:${await freePort()}`;
    const amqp = {
      urls: [rabbit.amqp_url],
      username: 'guest',
      password_file: 'password',
      queue: 'kits',
      ...more,
    };
    await writeFile(config, JSON.stringify({ ingest: { amqp }, database: 'service.db', listen }));
    return config;
  }

  async function start(config: string): Promise<Child> {
    child = startChild([command_file, 'service', '--config', config]);
    await child.printed(/service connected to the broker/u, patience_ms);
    return child;
  }

  async function connectKit(kit_id = randomUUID()): Promise<PublishingKit> {
    const kit = await PublishingKit.connect(kit_id, {
      ports: [rabbit.port],
      username: 'guest',
      password: 'guest',
    });
    kits.push(kit);
    return kit;
  }

  /** Everything that the broker accepted is stored, and counts once. */
  async function expectStoredOnce(kit: PublishingKit): Promise<void> {
    const database = openSqlite(join(dir, 'service.db'));
    try {
      const acks = (await readStored(database, kit.kit_id)).filter((ack) => ack.epoch === epoch);
      const stored = acks
        .flatMap(({ ranges }) => ranges)
        .reduce((sum, [first, last]) => sum + last - first + 1, 0);
      expect(stored).toBe(kit.published.size);
      expect((await sqlStore(database).kit(kit.kit_id))?.counts.received).toBe(kit.published.size);
    } finally {
      await database.close();
    }
  }

  /** Numbers of the kit that the running service has counted. */
  const received = (kit: PublishingKit): number => {
    const file = new Sqlite(join(dir, 'service.db'), { readonly: true });
    try {
      return counted.parse(file.prepare('SELECT received FROM kits WHERE kit_id = ?').get(kit.kit_id))
        .received;
    } finally {
      file.close();
    }
  };

  it(
    'stores each message once and acknowledges it to the kit, through kills of the service and of the broker',
    async () => {
      const config = await configured();
      await start(config);
      const kit = await connectKit();
      const ends = new AbortController();
      kit.publish(200, ends.signal);
      await eventually('messages are acknowledged', () => kit.named.size > 100, patience_ms);
      await child?.end('SIGKILL');
      await start(config);
      const named = kit.named.size;
      await eventually('more are acknowledged', () => kit.named.size > named + 100, patience_ms);
      await rabbit.kill();
      await rabbit.start();
      const before = kit.named.size;
      await eventually(
        'more are acknowledged after the restart',
        () => kit.named.size > before + 100,
        patience_ms,
      );
      expect(child?.output()).toContain('broker connection of the service failed; retrying');
      ends.abort();
      await eventually('the broker has everything', () => kit.isQuiet, patience_ms);
      // What a killed service had stored and not yet named, a real kit sends again.
      await eventually('everything is stored', () => received(kit) === kit.published.size, patience_ms);
      expect(kit.invented.size).toBe(0);
      await child?.end('SIGTERM');
      await expectStoredOnce(kit);
    },
    3 * patience_ms,
  );

  it(
    'reads hostile messages once, whatever they claim to be and however large, and stores those behind them',
    async () => {
      const service = await start(await configured());
      const kit = await connectKit();
      const connection = await connect(rabbit.amqp_url);
      const channel = await connection.createConfirmChannel();
      const ends = new AbortController();
      try {
        for (const [place, content] of hostile) {
          for (const contentType of ['application/json', 'image/png']) {
            const claims = { contentType, contentEncoding: 'br', headers: { 'x-death': 'x' }, priority: 255 };
            channel.publish('amq.topic', `k1.${kit.kit_id}.up.${place}`, content, claims);
          }
        }
        // What the broker takes by default, and no kit may make a replica hold.
        const large = Buffer.alloc(50_000_000, '[');
        for (let n = 0; n < 3; n += 1) channel.publish('amq.topic', `k1.${kit.kit_id}.up.batch`, large);
        await channel.waitForConfirms();
        kit.publish(200, ends.signal);
        await eventually('the messages behind are stored', () => kit.named.size > 50, patience_ms);
        await eventually(
          'nothing is left in the queue',
          async () => (await channel.checkQueue('kits')).messageCount === 0,
          patience_ms,
        );
      } finally {
        ends.abort();
        await connection.close();
      }
      await eventually('the broker has everything', () => kit.isQuiet, patience_ms);
      await eventually('each counts once', () => received(kit) === kit.published.size, patience_ms);
      const refused = service
        .output()
        .split('\n')
        .filter((line) => line.includes(texts.log_too_large));
      expect(refused).toHaveLength(5);
      expect(refused.filter((line) => line.includes('50000000'))).toHaveLength(3);
    },
    2 * patience_ms,
  );

  it(
    'sends tasks to the kit, and fails a task for a kit that has no session at the broker',
    async () => {
      const config = await configured();
      const words = ['service', 'key', 'add', 'test', '--all-kits', '--config', config];
      const key = (await startChild([command_file, ...words]).ended).stdout.trim();
      await start(config);
      const kit = await connectKit();
      const gone = await connectKit();
      const announce = async (one: PublishingKit): Promise<void> => {
        one.announce(asset_id, samples['announcement'] ?? {}, samples['commandList'] ?? {});
        await eventually(
          'the command is known',
          async () =>
            JSON.stringify(await ask(one, `/assets/${asset_id}/commands`)).includes('goto_waypoint'),
          patience_ms,
        );
      };
      const ask = async (one: PublishingKit, path: string, body?: object): Promise<unknown> => {
        const headers = { 'x-api-key': key, ...(body && { 'content-type': 'application/json' }) };
        const request = body ? { method: 'POST', headers, body: JSON.stringify(body) } : { headers };
        return (await fetch(`http://${listen}/api/kits/${one.kit_id}${path}`, request)).json();
      };
      const task = z.object({ id: z.uuid(), status: z.string(), result: z.unknown() });
      await announce(kit);
      const path = `/assets/${asset_id}/commands/goto_waypoint`;
      const { id } = task.parse(await ask(kit, path, { payload: { lat: 1 } }));
      await eventually('the kit has the task', () => kit.tasks.includes(id), patience_ms);
      await announce(gone);
      await gone.forget();
      const lost = task.parse(await ask(gone, path, { payload: { lat: 1 } }));
      await eventually(
        'the task has failed',
        async () => task.parse(await ask(gone, `/tasks/${lost.id}`)).status === 'failed',
      );
      expect(JSON.stringify(await ask(gone, `/tasks/${lost.id}`))).toContain('not connected');
    },
    2 * patience_ms,
  );

  it(
    'names the remedy when the password is wrong, and when the queue exists with other properties',
    async () => {
      child = startChild([command_file, 'service', '--config', await configured({ password_file: 'wrong' })]);
      expect(await child.printed(/ACCESS.REFUSED.*check the password.*/u, patience_ms)).toContain('guest');
      await child.end('SIGKILL');
      const { connect } = await import('amqplib');
      const model = await connect(rabbit.amqp_url);
      await (await model.createChannel()).assertQueue('classic', { durable: true });
      await model.close();
      child = startChild([command_file, 'service', '--config', await configured({ queue: 'classic' })]);
      expect(
        await child.printed(/PRECONDITION.FAILED.*delete it when it is empty.*/u, patience_ms),
      ).toContain('classic');
    },
    patience_ms,
  );
});

/** What a kit may publish below its own topic, and no reader may stumble over. */
const hostile = [
  ['telemetry', Buffer.alloc(2_000_000, '[')],
  ['telemetry', Buffer.alloc(100_000, '[')],
  ['telemetry', Buffer.alloc(0)],
  ['telemetry', Buffer.from('{"v":1,"seq":-1,"data":"\u0000"}')],
  ['batch', deflateSync(Buffer.from(`{"v":1,"historical":false,"groups":[${'1,'.repeat(4_000_000)}1]}`))],
  ['batch', Buffer.from([0x78, 0x9c, 0xff, 0xff])],
  ['no.such.channel', Buffer.from('{}')],
  ['asset.x.y.z', Buffer.from('{}')],
] as const;
