/** Three nodes of RabbitMQ that are killed in turn, two services on one quorum queue, kits that reconnect; prints the account. */
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readStored } from '../../../src/cloud/stored/received/received-numbers.ts';
import { openPostgres } from '../../../src/cloud/sql/postgres.ts';
import { sqlStore } from '../../../src/cloud/store/sql-store.ts';
import { startRabbitCluster } from '../../support/brokers/rabbitmq.ts';
import { startChild } from '../../support/child.ts';
import { eventually } from '../../support/eventually.ts';
import { command_file } from '../../support/kit/kit.ts';
import { startPostgres } from '../../support/database/postgres.ts';
import { withDirectory } from '../../support/temporary.ts';
import { numberOf } from '../support/numbers.ts';
import { epoch, PublishingKit } from '../support/published.ts';
import { freePort } from '../../support/ports.ts';

const kills = numberOf('FAULTS_RABBIT_KILLS', 6);
const kits_of_campaign = 6;
const per_second = 30;
const patience_ms = 240_000;

it('kills of RabbitMQ nodes lose no message that the broker accepted, and none counts twice', async () => {
  const rabbit = await startRabbitCluster(3);
  const postgres = await startPostgres({ durable: true });
  try {
    await withDirectory(async (dir) => {
      const database = await postgres.newDatabase('kits');
      await writeFile(join(dir, 'postgres'), postgres.password, { mode: 0o600 });
      await writeFile(join(dir, 'rabbit'), rabbit.password, { mode: 0o600 });
      const start = async () => {
        const config = join(dir, `${randomUUID()}.yaml`);
        const urls = rabbit.nodes.map((node) => node.amqp_url);
        const amqp = { urls, username: rabbit.username, password_file: 'rabbit' };
        const listen = `127.0.0.1:${await freePort()}`;
        const text = { ingest: { amqp }, database, database_password_file: 'postgres', listen };
        await writeFile(config, JSON.stringify(text));
        const child = startChild([command_file, 'service', '--config', config]);
        await child.printed(/service connected to the broker/u, patience_ms);
        return child;
      };
      const services = [await start(), await start()];
      const ports = rabbit.nodes.map((node) => node.mqtt_port);
      const login = { username: rabbit.username, password: rabbit.password };
      const kits = await Promise.all(
        Array.from({ length: kits_of_campaign }, async (_, at) =>
          PublishingKit.connect(randomUUID(), {
            ports: [...ports.slice(at % 3), ...ports.slice(0, at % 3)],
            ...login,
          }),
        ),
      );
      const published = (): number => kits.reduce((sum, kit) => sum + kit.published.size, 0);
      const ends = new AbortController();
      for (const kit of kits) kit.publish(per_second, ends.signal);
      for (let kill = 0; kill < kills; kill += 1) {
        const before = published();
        await eventually('messages are accepted', () => published() > before + 200, patience_ms);
        const node = rabbit.nodes[kill % 3];
        await node?.kill();
        const at = published();
        await eventually('the others go on', () => published() > at + 200, patience_ms);
        await node?.start();
      }
      ends.abort();
      await eventually('the broker has everything', () => kits.every(({ isQuiet }) => isQuiet), patience_ms);
      const opened = await openPostgres({ url: database, password: postgres.password });
      const missing = async (): Promise<number> => {
        let count = 0;
        for (const kit of kits) {
          const acks = (await readStored(opened, kit.kit_id)).filter((ack) => ack.epoch === epoch);
          const ranges = acks.flatMap((ack) => ack.ranges);
          for (const seq of kit.published)
            if (!ranges.some(([first, last]) => first <= seq && seq <= last)) count += 1;
        }
        return count;
      };
      await eventually('everything is stored', async () => (await missing()) === 0, patience_ms).catch(
        () => undefined,
      );
      const lost = await missing();
      let received = 0;
      for (const kit of kits) received += (await sqlStore(opened).kit(kit.kit_id))?.counts.received ?? 0;
      const ended = Map.groupBy(
        kits.flatMap((kit) => kit.ends),
        ({ reason }) => reason,
      );
      const reasons = [...ended].map(([reason, all]) => `${all.length} x ${reason}`);
      console.log(
        `${kills} kills of RabbitMQ nodes: ${lost} of ${published()} accepted messages lost, ${received} counted; ` +
          `connections of kits that ended: ${reasons.join('; ')}`,
      );
      expect({ lost, received }).toEqual({ lost: 0, received: published() });
      for (const kit of kits) kit.leave();
      for (const child of services) await child.end('SIGTERM');
      await opened.close();
    });
  } finally {
    await postgres.stop();
    await rabbit.stop();
  }
});
