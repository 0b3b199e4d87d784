/** Two versions of the service on one PostgreSQL and one shared subscription, as during an upgrade of its replicas, and a kit that this test plays. */
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connectAsync } from 'mqtt';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { writeEnvelope } from '../../../src/contract/envelope.ts';
import { channels, downFilter, parseDown, upTopic } from '../../../src/contract/topics.ts';
import { schema } from '../../../src/cloud/sql/schema.ts';
import { texts } from '../../../src/cloud/texts.ts';
import { type Broker, startMosquitto } from '../../support/brokers/broker.ts';
import { type Child, startChild } from '../../support/child.ts';
import { asset_id, samples } from '../../support/contract-samples.ts';
import { eventually } from '../../support/eventually.ts';
import { command_file } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';
import { freePort } from '../../support/ports.ts';
import { type OtherTables, other_tables_module } from '../../support/database/other-tables.ts';
import { type Postgres, startPostgres } from '../../support/database/postgres.ts';
import { withDirectory } from '../../support/temporary.ts';

const later = schema.version + 1;
/** The next version: it adds a column, and this version may go on. */
const expanding: OtherTables = {
  schema_version: later,
  writers_from: schema.writers_from,
  column: 'of_the_next_version',
};
/** The one that no longer understands what this version writes. */
const contracting: OtherTables = { ...expanding, writers_from: later };
const excluded = texts.schema_later(later, schema.version);
/** Exit codes: systemd starts it again; it does not. */
const failed = 1;
const config_fault = 78;

it.skipIf(peerMissing('mosquitto', 'postgres', 'initdb', 'setpriv'))(
  'two versions store what a kit sends side by side, and the one that is excluded ends: nothing that was acknowledged is missing in the history',
  { timeout: 240_000 },
  async () => {
    const [postgres, broker] = await Promise.all([startPostgres(), startMosquitto()]);
    const children: Child[] = [];
    const ends: (() => Promise<unknown>)[] = [async () => broker.stop(), async () => postgres.stop()];
    try {
      await withDirectory(async (dir) => {
        const run = async (words: readonly string[], tables?: OtherTables) => {
          const port = await freePort();
          const metrics = await freePort();
          const config = await writeConfig(dir, { postgres, broker, port, metrics });
          const other = tables ? ['--import', other_tables_module] : [];
          const env: Record<string, string> = tables ? { OTHER_TABLES: JSON.stringify(tables) } : {};
          const child = startChild([...other, command_file, 'service', ...words, '--config', config], {
            env,
          });
          children.push(child);
          return { child, url: `http://127.0.0.1:${port}`, metrics: `http://127.0.0.1:${metrics}/metrics` };
        };
        const startReplica = async (tables?: OtherTables) => {
          const replica = await run([], tables);
          await replica.child.printed(/service connected to the broker/u);
          return replica;
        };
        const { child: keyMaker } = await run(['key', 'add', 'test', '--all-kits']);
        const key = (await keyMaker.ended).stdout.trim();
        const kit = await playKit(broker.url);
        ends.unshift(kit.leave);

        const before = await startReplica();
        const after = await startReplica(expanding);
        await kit.move(40);
        await eventually('all is acknowledged', () => kit.unacknowledged().length === 0);
        expect(await historyOf(after.url, key, kit.kit_id)).toEqual(kit.sent());
        // The version of before reads all of it, too, and has stored its part.
        expect(await historyOf(before.url, key, kit.kit_id)).toEqual(kit.sent());
        for (const { metrics } of [before, after]) expect(await storedBy(metrics)).toBeGreaterThan(0);

        const moving = kit.move(40);
        const { child: upgrade } = await run(['upgrade'], contracting);
        expect((await upgrade.ended).code).toBe(0);
        const end = await before.child.ended;
        expect(end.code).toBe(failed);
        expect(end.stderr).toContain(excluded);
        await moving;
        // What the broker had given it and nobody stored comes again from the kit, as with any replica that ends.
        await eventually('all is acknowledged', async () => {
          if (kit.unacknowledged().length > 0) await kit.repeat();
          return kit.unacknowledged().length === 0;
        });
        expect(await historyOf(after.url, key, kit.kit_id)).toEqual(kit.sent());

        const { child: again } = await run([]);
        const refusal = await again.ended;
        expect(refusal.code).toBe(config_fault);
        expect(refusal.stderr).toContain(texts.later_version_database(later));
      });
    } finally {
      for (const child of children) await child.end('SIGKILL');
      for (const end of ends) await end();
    }
  },
);

interface Place {
  readonly postgres: Postgres;
  readonly broker: Broker;
  readonly port: number;
  readonly metrics: number;
}

async function writeConfig(dir: string, { postgres, broker, port, metrics }: Place): Promise<string> {
  const config = join(dir, `${port}.yaml`);
  const database_password_file = join(dir, 'postgres-password');
  await writeFile(database_password_file, `${postgres.password}\n`, { mode: 0o600 });
  const text = {
    broker: { url: broker.url },
    database: postgres.url,
    database_password_file,
    share: 'all',
    listen: `127.0.0.1:${port}`,
    metrics: { listen: `127.0.0.1:${metrics}` },
  };
  await writeFile(config, JSON.stringify(text));
  return config;
}

/** The numbers of the positions in the history of the kit. */
async function historyOf(url: string, key: string, kit_id: string): Promise<readonly number[]> {
  const path = `/api/kits/${kit_id}/history?class=position&order=asc&limit=5000&from=2020-01-01T00:00:00Z`;
  const response = await fetch(`${url}${path}`, { headers: { 'x-api-key': key } });
  const page = z.object({ messages: z.array(z.object({ seq: z.int() })) });
  const { messages } = page.parse(await response.json());
  return messages.map(({ seq }) => seq).toSorted((a, b) => a - b);
}

/** Messages that this replica has stored. */
async function storedBy(metrics: string): Promise<number> {
  const text = await (await fetch(metrics)).text();
  return Number(/^kit_service_messages_total (\d+)/mu.exec(text)?.[1] ?? 0);
}

async function playKit(url: string) {
  const kit_id = randomUUID();
  const epoch = 17;
  const client = await connectAsync(url, { clientId: kit_id, protocolVersion: 5 }, false);
  const acknowledged = new Set<number>();
  const ackOf = z.object({ epoch: z.int(), ranges: z.array(z.tuple([z.int(), z.int()])) });
  client.on('message', (topic, payload) => {
    if (parseDown(kit_id, topic)?.kind !== 'ack') return;
    for (const [first, last] of ackOf.parse(JSON.parse(payload.toString('utf8'))).ranges)
      for (let seq = first; seq <= last; seq += 1) acknowledged.add(seq);
  });
  await client.subscribeAsync(downFilter(kit_id), { qos: 1 });
  const time_ms = Date.now();
  const write = (seq: number, data: object): string =>
    writeEnvelope({ epoch, seq, time_ms: time_ms + seq }, JSON.stringify(data));
  await client.publishAsync(upTopic(kit_id, channels.state), write(1, samples['kitState'] ?? {}), {
    qos: 1,
    retain: true,
  });
  let last = 1;
  const publish = async (seq: number): Promise<void> => {
    const topic = upTopic(kit_id, channels.feed(asset_id, 'gps'));
    await client.publishAsync(topic, write(seq, { lat: seq / 10, lon: 8.5, alt_m: null }), { qos: 1 });
  };
  const sent = (): readonly number[] => Array.from({ length: last - 1 }, (_, index) => index + 2);
  const unacknowledged = (): readonly number[] => sent().filter((seq) => !acknowledged.has(seq));
  return {
    kit_id,
    sent,
    unacknowledged,
    async move(times: number): Promise<void> {
      for (let n = 0; n < times; n += 1) await publish((last += 1));
    },
    async repeat(): Promise<void> {
      for (const seq of unacknowledged()) await publish(seq);
    },
    leave: async () => client.endAsync(true),
  };
}
