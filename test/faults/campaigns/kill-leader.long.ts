/** Leader kills of a PostgreSQL by Patroni, synchronous, with the samples for Patroni and HAProxy, while kits publish; prints the account. */
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readStored } from '../../../src/cloud/stored/received/received-numbers.ts';
import { openPostgres } from '../../../src/cloud/sql/postgres.ts';
import { sqlStore } from '../../../src/cloud/store/sql-store.ts';
import { startMosquitto, unthrottled } from '../../support/brokers/broker.ts';
import { startChild } from '../../support/child.ts';
import { eventually } from '../../support/eventually.ts';
import { command_file } from '../../support/kit/kit.ts';
import { withDirectory } from '../../support/temporary.ts';
import { numberOf } from '../support/numbers.ts';
import { startPatroni } from '../support/patroni.ts';
import { epoch, PublishingKit } from '../support/published.ts';
import { freePort } from '../../support/ports.ts';

const kills = numberOf('FAULTS_LEADER_KILLS', 5);
const kits_of_campaign = 3;
const per_second = 40;
const patience_ms = 180_000;

it('kills of the leader of a synchronous PostgreSQL lose no acknowledged message, and the service continues automatically', async () => {
  const cluster = await startPatroni(3);
  const broker = await startMosquitto({ conf: unthrottled });
  try {
    await withDirectory(async (dir) => {
      const database_password_file = join(dir, 'password');
      await writeFile(database_password_file, cluster.password, { mode: 0o600 });
      const config = join(dir, 'service.yaml');
      const listen = `127.0.0.1:${await freePort()}`;
      const text = { broker: { url: broker.url }, database: cluster.url, database_password_file, listen };
      await writeFile(config, JSON.stringify({ ...text, database_replicated: true }));
      const child = startChild([command_file, 'service', '--config', config]);
      await child.printed(/service connected to the broker/u, patience_ms);
      const kits = await Promise.all(
        Array.from({ length: kits_of_campaign }, async () =>
          PublishingKit.connect(randomUUID(), broker.port),
        ),
      );
      const named = (): number => kits.reduce((sum, kit) => sum + kit.named.size, 0);
      const ends = new AbortController();
      for (const kit of kits) kit.publish(per_second, ends.signal);
      const outages_s: number[] = [];
      for (let kill = 0; kill < kills; kill += 1) {
        const before = named();
        await eventually('messages are acknowledged', () => named() > before + 100, patience_ms);
        const restart = await cluster.killLeader();
        const [at, begin_ms] = [named(), performance.now()];
        await eventually('the service goes on', () => named() > at + 100, patience_ms);
        outages_s.push((performance.now() - begin_ms) / 1_000);
        await restart();
      }
      ends.abort();
      await eventually('the broker has everything', () => kits.every(({ isQuiet }) => isQuiet), patience_ms);
      const database = await openPostgres({ url: cluster.url, password: cluster.password });
      const missing = async (numbers: (kit: PublishingKit) => Iterable<number>): Promise<number> => {
        let count = 0;
        for (const kit of kits) {
          const acks = (await readStored(database, kit.kit_id)).filter((ack) => ack.epoch === epoch);
          const ranges = acks.flatMap((ack) => ack.ranges);
          for (const seq of numbers(kit))
            if (!ranges.some(([first, last]) => first <= seq && seq <= last)) count += 1;
        }
        return count;
      };
      await eventually(
        'everything is stored',
        async () => (await missing((kit) => kit.published)) === 0,
        patience_ms,
      );
      const lost = await missing((kit) => kit.named);
      const published = kits.reduce((sum, kit) => sum + kit.published.size, 0);
      let received = 0;
      for (const kit of kits) received += (await sqlStore(database).kit(kit.kit_id))?.counts.received ?? 0;
      console.log(
        `${kills} kills of the leader: ${lost} of ${named()} acknowledged messages missing, ${published} published, ${received} stored; ` +
          `${outages_s.map((s) => s.toFixed(1)).join(', ')} s until the service had acknowledged 100 more`,
      );
      expect({ lost, received }).toEqual({ lost: 0, received: published });
      expect(Math.max(...outages_s)).toBeLessThan(patience_ms / 1_000);
      expect(child.output()).not.toContain('internal error');
      for (const kit of kits) kit.leave();
      await child.end('SIGTERM');
      await database.close();
    });
  } finally {
    await broker.stop();
    await cluster.stop();
  }
});
