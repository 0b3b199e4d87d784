/** Two PostgreSQL servers, the second a standby of the first: what a failover keeps, what it loses, and what the service reports before. */
import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Client } from 'pg';
import { z } from 'zod';
import { StorageUnavailable } from '../../../src/platform/errors.ts';
import type { Database } from '../../../src/cloud/sql/database.ts';
import { openPostgres } from '../../../src/cloud/sql/postgres.ts';
import { replicationFault } from '../../../src/cloud/sql/replication.ts';
import { readStored } from '../../../src/cloud/stored/received/received-numbers.ts';
import { epoch, PublishingKit } from '../../faults/support/published.ts';
import { type Broker, startMosquitto, unthrottled } from '../../support/brokers/broker.ts';
import { type Child, startChild } from '../../support/child.ts';
import { eventually } from '../../support/eventually.ts';
import { command_file } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';
import { clientOf, type Postgres, startPostgres } from '../../support/database/postgres.ts';
import { withDirectory } from '../../support/temporary.ts';
import { freePort } from '../../support/ports.ts';

const patience_ms = 60_000;

describe.skipIf(peerMissing('mosquitto', 'postgres', 'initdb', 'pg_basebackup', 'setpriv'))(
  'a database with a standby',
  () => {
    let primary: Postgres;
    let standby: Postgres;
    let broker: Broker | undefined;
    let child: Child | undefined;
    const kits: PublishingKit[] = [];
    const opened: Database[] = [];

    beforeEach(async () => {
      primary = await startPostgres();
      standby = await startPostgres({
        standby_of: { url: primary.url, application_name: 'second' },
      });
    }, patience_ms);
    afterEach(async () => {
      for (const kit of kits.splice(0)) kit.leave();
      for (const database of opened.splice(0)) await database.close();
      await child?.end('SIGKILL');
      child = undefined;
      await broker?.stop();
      broker = undefined;
      await standby?.stop();
      await primary?.stop();
    });

    /** Both servers in one address, the primary first. */
    const both = (): string =>
      `${primary.url.replace('/postgres', '')},127.0.0.1:${new URL(standby.url).port}/postgres`;

    async function open(url: string): Promise<Database> {
      const database = await openPostgres({ url, password: primary.password });
      opened.push(database);
      return database;
    }

    async function startService(dir: string, more: object = {}): Promise<Child> {
      const database_password_file = join(dir, 'password');
      await writeFile(database_password_file, primary.password, { mode: 0o600 });
      const [listen, metrics] = [await freePort(), await freePort()].map((port) => `127.0.0.1:${port}`);
      const config = join(dir, 'service.yaml');
      const text = {
        broker: { url: broker?.url },
        database: both(),
        database_password_file,
        listen,
        ...more,
      };
      await writeFile(config, JSON.stringify({ ...text, metrics: { listen: metrics } }));
      child = startChild([command_file, 'service', '--config', config]);
      await child.printed(/service connected to the broker/u, patience_ms);
      return child;
    }

    /** Publishes until the service has acknowledged much, then kills the primary; resolves with what was named in `down/ack`. */
    async function killUnderLoad(beforeKill: () => Promise<void>): Promise<PublishingKit> {
      const kit = await PublishingKit.connect(randomUUID(), broker?.port ?? 0);
      kits.push(kit);
      const ends = new AbortController();
      kit.publish(100, ends.signal);
      await eventually('the kit has acknowledgements', () => kit.named.size > 200, patience_ms);
      await beforeKill();
      await primary.kill();
      const named = kit.named.size;
      await standby.promote();
      await eventually('the service goes on', () => kit.named.size > named + 200, patience_ms);
      ends.abort();
      await eventually('the broker has everything', () => kit.isQuiet, patience_ms);
      return kit;
    }

    async function missing(kit: PublishingKit): Promise<number> {
      const database = await open(standby.url);
      const stored = (await readStored(database, kit.kit_id)).filter((ack) => ack.epoch === epoch);
      const has = (seq: number): boolean =>
        stored.some(({ ranges }) => ranges.some(([first, last]) => first <= seq && seq <= last));
      return [...kit.named].filter((seq) => !has(seq)).length;
    }

    it(
      'loses nothing that was acknowledged when it replicates synchronously and the primary is killed',
      async () => {
        await primary.set('synchronous_standby_names', 'second');
        broker = await startMosquitto({ conf: unthrottled });
        await withDirectory(async (dir) => {
          await startService(dir);
          const kit = await killUnderLoad(async () => undefined);
          await eventually(
            'all that was published is stored',
            async () => [...kit.published].every((seq) => kit.named.has(seq)),
            patience_ms,
          );
          expect(await missing(kit)).toBe(0);
          expect(child?.output()).not.toContain('needs attention');
        });
      },
      2 * patience_ms,
    );

    it(
      'loses acknowledged messages when it replicates asynchronously, and the service has warned of that',
      async () => {
        broker = await startMosquitto({ conf: unthrottled });
        await withDirectory(async (dir) => {
          const service = await startService(dir);
          await service.printed(/synchronous_standby_names is empty.*synchronous_mode/u, patience_ms);
          const { stderr } = await startChild([command_file, 'check', join(dir, 'service.yaml')]).ended;
          expect(stderr).toContain(
            'warning: the database has 1 standby and synchronous_standby_names is empty',
          );
          const figures = `http://${await metricsOf(dir)}`;
          expect(await (await fetch(`${figures}/healthz`)).text()).toContain('set synchronous_standby_names');
          const text = await (await fetch(`${figures}/metrics`)).text();
          expect(text).toMatch(/^kit_service_attention\{about="replication"\} 1$/mu);
          const kit = await killUnderLoad(async () => {
            // A standby that is behind, as over a slow or interrupted link.
            await stopReceiving(standby);
            const before = kit0().named.size;
            await eventually('more is acknowledged', () => kit0().named.size > before + 100, patience_ms);
          });
          expect(await missing(kit)).toBeGreaterThan(50);
        });
      },
      2 * patience_ms,
    );
    const kit0 = (): PublishingKit => {
      const [kit] = kits;
      if (!kit) throw new Error('no kit');
      return kit;
    };

    it('is reported while it has a standby and does not wait for it', async () => {
      const database = await open(both());
      const fault = async (): Promise<string | undefined> => replicationFault(database, false);
      await eventually('the standby is seen', async () => (await fault()) !== undefined, patience_ms);
      expect(await fault()).toContain('synchronous_standby_names is empty');
      await primary.set('synchronous_standby_names', 'second');
      await eventually('it is synchronous', async () => (await fault()) === undefined, patience_ms);
      await primary.set('synchronous_commit', 'local');
      await eventually('commits do not wait', async () => (await fault()) !== undefined, patience_ms);
      expect(await fault()).toContain('synchronous_commit is local');
    });

    it('is written at the primary, whichever host is named first', async () => {
      await open(primary.url);
      const reversed = both().replace(/@(?<one>[^,]+),(?<two>[^/]+)/u, '@$<two>,$<one>');
      const database = await open(reversed);
      await database.all('INSERT INTO kits (kit_id) VALUES (?)', randomUUID());
      const rows = await database.all('SHOW transaction_read_only');
      expect(rows).toEqual([{ transaction_read_only: 'off' }]);
    });

    it('does not count as having committed when the wait for the standby was cancelled', async () => {
      const database = await open(primary.url);
      await primary.set('synchronous_standby_names', 'second');
      await database.all('SELECT 1');
      await standby.kill();
      const stored = database.transaction(async (queries) =>
        queries.all('INSERT INTO kits (kit_id) VALUES (?)', randomUUID()),
      );
      stored.catch(() => undefined);
      await eventually('the commit waits', async () => cancelWaiting(primary), patience_ms);
      await expect(stored).rejects.toThrow(StorageUnavailable);
      await expect(stored).rejects.toThrow(/synchronous replication/u);
    });
  },
);

async function metricsOf(dir: string): Promise<string> {
  const config: unknown = JSON.parse(await readFile(join(dir, 'service.yaml'), 'utf8'));
  return z.object({ metrics: z.object({ listen: z.string() }) }).parse(config).metrics.listen;
}

async function ask(server: Postgres, sql: string): Promise<readonly unknown[]> {
  const client = new Client(clientOf(server.url));
  client.on('error', () => undefined);
  await client.connect();
  try {
    const { rows } = await client.query<Record<string, unknown>>(sql);
    return rows;
  } finally {
    await client.end();
  }
}

/** Cancels a commit that waits for the standby; returns whether there was one. */
async function cancelWaiting(primary: Postgres): Promise<boolean> {
  const waiting = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`;
  return (await ask(primary, waiting)).length > 0;
}

/** It gets nothing more of its primary, as when the link between them is cut. */
async function stopReceiving(standby: Postgres): Promise<void> {
  await standby.set('primary_conninfo', 'host=127.0.0.1 port=1');
  const receivers = 'SELECT 1 FROM pg_stat_wal_receiver';
  await eventually('the standby is cut off', async () => (await ask(standby, receivers)).length === 0);
}
