/** Doctor, status and support bundle of the service for many kits, with a real broker and real databases. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { texts } from '../../../src/cli/doctor/texts.ts';
import { runProgram } from '../../../src/cli/program.ts';
import { openPostgres } from '../../../src/cloud/sql/postgres.ts';
import { schema } from '../../../src/cloud/sql/schema.ts';
import { type Broker, startMosquitto } from '../../support/brokers/broker.ts';
import { makeCertificates } from '../../support/certificates.ts';
import { type Postgres, startPostgres } from '../../support/database/postgres.ts';
import { eventually } from '../../support/eventually.ts';
import { startScriptedBroker } from '../../support/brokers/scripted-broker.ts';
import { peerMissing } from '../../support/peers.ts';
import { freePort } from '../../support/ports.ts';
import { makeDirectory, run } from '../../support/temporary.ts';
import { recordedShell } from './shell-of-test.ts';

const password = 'cloud-passw0rd';
const acl = 'user cloud\ntopic read k1/+/up/#\ntopic write k1/+/down/#\n';
const report = z.object({
  findings: z.array(
    z.object({ level: z.string(), what: z.string(), finding: z.string(), remedy: z.string().nullable() }),
  ),
});

async function typed(...words: readonly string[]) {
  const shell = recordedShell({ env: { PATH: process.env['PATH'] } });
  const code = await runProgram(words, shell);
  return { code, out: shell.stdout(), err: shell.stderr() };
}

/** What is no `ok`, apart from the clock of the machine that the test runs on. */
async function complaints(config: string, ...words: readonly string[]): Promise<readonly string[]> {
  const { out } = await typed(...(words.length > 0 ? words : ['service', 'doctor']), '-c', config, '--json');
  const { findings } = report.parse(JSON.parse(out));
  expect(findings.every((each) => (each.level === 'ok') === (each.remedy === null))).toBe(true);
  return findings
    .filter(({ level, what }) => level !== 'ok' && what !== 'clock')
    .map(({ level, what, finding }) => `${level} ${what}: ${finding}`);
}

interface Scene {
  readonly dir: string;
  readonly config: string;
  readonly port: number;
  readonly write: (changes?: Readonly<Record<string, unknown>>) => Promise<void>;
  /** Runs the service until the result is called. */
  readonly start: () => Promise<() => Promise<void>>;
}

async function withScene(broker: Pick<Broker, 'url'>, play: (scene: Scene) => Promise<void>): Promise<void> {
  const dir = await makeDirectory();
  const config = join(dir, 'service.yaml');
  const port = await freePort();
  const password_file = join(dir, 'password');
  await writeFile(password_file, `${password}\n`, { mode: 0o600 });
  const write: Scene['write'] = async (changes = {}) =>
    writeFile(
      config,
      JSON.stringify({
        broker: { url: broker.url, username: 'cloud', password_file },
        database: join(dir, 'service.db'),
        listen: `127.0.0.1:${port}`,
        ...changes,
      }),
      { mode: 0o600 },
    );
  await write();
  await play({
    dir,
    config,
    port,
    write,
    async start() {
      const ends = new AbortController();
      const ended = runProgram(['service', '-c', config], recordedShell({ signal: ends.signal }));
      await eventually('it answers', async () =>
        fetch(`http://127.0.0.1:${port}/ready`).then(
          () => true,
          () => false,
        ),
      );
      return async () => {
        ends.abort();
        await ended;
      };
    },
  });
}

describe.skipIf(peerMissing('mosquitto', 'mosquitto_passwd', 'openssl', 'tar'))('with mosquitto', () => {
  let broker: Broker;
  beforeAll(async () => {
    broker = await startMosquitto({ passwords: { cloud: password }, acl });
  });
  afterAll(async () => broker.stop());

  test('a service that works has no finding, and says what it holds', async () => {
    await withScene(broker, async ({ config, start }) => {
      expect((await typed('service', 'key', 'add', 'ops', '--all-kits', '-c', config)).code).toBe(0);
      const stop = await start();
      try {
        await eventually('ready', async () => (await complaints(config)).length === 0);
        // The commands of the kit see by the file which program is meant.
        expect(await complaints(config, 'doctor')).toEqual([]);
        const { code, out } = await typed('service', 'status', '-c', config);
        expect(code).toBe(0);
        expect(out).toMatch(
          /^service .* ready .*\nbroker .*\ndatabase .*tables of version \d.*\nkits +0, 0 online\nkeys +1$/mu,
        );
      } finally {
        await stop();
      }
      expect((await typed('status', '-c', config)).code).toBe(69);
    });
  });

  test('a stopped service tries login and rights itself, and names what the broker refuses', async () => {
    await withScene(broker, async ({ config, dir, write }) => {
      const first = await complaints(config);
      expect(first).toEqual([
        expect.stringMatching(/^warn service: does not run: nothing listens on 127/u),
        expect.stringMatching(/^warn database: .*service\.db has no tables yet$/u),
      ]);
      const wrong = join(dir, 'wrong');
      await writeFile(wrong, 'nonsense', { mode: 0o600 });
      await write({ broker: { url: broker.url, username: 'cloud', password_file: wrong } });
      expect(await complaints(config)).toContainEqual(
        expect.stringMatching(/^fail broker login: the broker rejected cloud: /u),
      );
      await write();
      // Mosquitto grants every subscription and withholds the messages; others refuse it.
      const narrow = await startScriptedBroker({
        onSubscribe: (packet_id, filters, peer) =>
          peer.suback(
            packet_id,
            filters.map(() => 0x87),
          ),
      });
      await write({ broker: { url: narrow.url, username: 'cloud' } });
      expect(await complaints(config)).toContainEqual(
        expect.stringMatching(/^fail broker rights up: no permission to read k1\/\+\/up\/#: not authorized/u),
      );
      await narrow.close();
      await write();
      await broker.setAcl('user cloud\ntopic read k1/+/up/#\n');
      await eventually('it may not write', async () =>
        (await complaints(config)).some((each) =>
          each.startsWith('fail broker rights down: no permission to write'),
        ),
      );
      await broker.setAcl(acl);
      await write({ broker: { url: `mqtt://127.0.0.1:${await freePort()}`, username: 'cloud' } });
      expect(await complaints(config)).toContainEqual(expect.stringMatching(/^fail broker tcp: .*refused/u));
    });
  });

  test(
    'a service that cannot reach its broker, its certificate, secrets, keys and webhooks are looked at',
    { tags: 'long' },
    async () => {
      await withScene(broker, async ({ config, dir, write, start }) => {
        const { expired } = await makeCertificates(dir, 'unused');
        await write({ broker: { url: `mqtt://127.0.0.1:${await freePort()}`, username: 'cloud' } });
        const stop = await start();
        expect(await complaints(config)).toContainEqual(
          expect.stringMatching(
            /^fail service: .*is not ready: the service is not connected to the broker$/u,
          ),
        );
        await stop();
        const tables = new Sqlite(join(dir, 'service.db'));
        const key = (label: string, expires_ms: number): unknown =>
          tables.exec(`INSERT INTO api_keys (key_id, user_id, label, hash, scopes, kits, created_ms, expires_ms)
          VALUES ('${label}', 'u', '${label}', 'h', '[]', '"*"', 0, ${expires_ms})`);
        key('old', 1);
        await run('chmod', '644', join(dir, 'password'));
        expect((await complaints(config)).join('\n')).toContain(`warn keys: ${texts.no_valid_key}`);
        await write({ tls: { cert_file: expired.cert, key_file: expired.key } });
        expect((await complaints(config)).join('\n')).toContain('every user of this machine can access');
        await run('chmod', '600', join(dir, 'password'));
        key('new', Date.now() + 86_400_000);
        const found = await complaints(config);
        expect(found).toContainEqual(
          expect.stringMatching(/^warn configuration: .*expired\.crt.* expired on/u),
        );
        expect(found).toContain(`warn keys: ${texts.keys_expired('old')}`);
        await write();
        tables.exec("DELETE FROM api_keys WHERE label = 'old'");
        const row = (label: string, more: string): unknown =>
          tables.exec(`INSERT INTO webhooks (webhook_id, label, url, types, kits, key_id, secrets, created_ms, dead, disabled_reason, last_fault)
         VALUES ('${label}', '${label}', 'https://hooks.example.com/services/T00/B00/secretpath', '[]', '"*"', 'k',
           '[{"text":"whsec_c2VjcmV0LW9mLXdlYmhvb2s=","expires_ms":null}]', 0, ${more})`);
        row('pager', "3, NULL, 'HTTP 500 at https://hooks.example.com/services/T00/B00/secretpath'");
        row('chat', "0, 'gone', NULL");
        expect((await complaints(config)).slice(1)).toEqual([
          `warn keys: ${texts.keys_expire('new')}`,
          `warn webhook chat: ${texts.webhook_disabled('gone')}`,
          expect.stringMatching(/^warn webhook pager: 3 messages were given up: HTTP 500/u),
        ]);
        const out = join(dir, 'out');
        await mkdir(out);
        const bundle = join(dir, 'bundle.tar.gz');
        expect(await typed('support-bundle', '-c', config, '-o', bundle)).toMatchObject({ code: 0, err: '' });
        await run('tar', '-xzf', bundle, '-C', out, '--strip-components=1');
        const names = await readdir(out);
        expect(names).toEqual(
          expect.arrayContaining([
            'config.json',
            'doctor.txt',
            'status.json',
            'system.json',
            'versions.json',
          ]),
        );
        const content = (
          await Promise.all(names.map(async (name) => readFile(join(out, name), 'utf8')))
        ).join('\n');
        expect(content).toContain('"label": "pager"');
        for (const secret of [password, 'secretpath', 'c2VjcmV0LW9mLXdlYmhvb2s='])
          expect(content).not.toContain(secret);
        tables.pragma('user_version = 99');
        tables.close();
        expect(await complaints(config)).toContainEqual(
          expect.stringMatching(/^fail database: the database was written by a later version \(99\)$/u),
        );
        await write({ database: '/proc/none/service.db' });
        expect(await complaints(config)).toContainEqual(
          expect.stringMatching(/^(?:fail|warn) disk write: cannot write/u),
        );
      });
    },
  );
});

describe.skipIf(peerMissing('mosquitto', 'mosquitto_passwd', 'initdb', 'postgres'))('with PostgreSQL', () => {
  let broker: Broker;
  let postgres: Postgres;
  beforeAll(async () => {
    [broker, postgres] = await Promise.all([
      startMosquitto({ passwords: { cloud: password }, acl }),
      startPostgres(),
    ]);
  }, 120_000);
  afterAll(async () => {
    await broker.stop();
    await postgres.stop();
  });

  test(
    'reach, login, tables, rights, replicas, replication and free connections are looked at',
    { tags: 'long' },
    async () => {
      await withScene(broker, async ({ config, dir, write, start }) => {
        const database_password_file = join(dir, 'postgres');
        await writeFile(database_password_file, postgres.password, { mode: 0o600 });
        const use = { database: postgres.url, database_password_file, share: 'doctored' };
        await write(use);
        expect(await complaints(config)).toContainEqual(
          expect.stringMatching(/^warn database: .*\(PostgreSQL \d+.*has no tables yet$/u),
        );
        await typed('service', 'key', 'add', 'ops', '--all-kits', '-c', config);
        const stop = await start();
        await eventually('ready', async () => (await complaints(config)).length === 0);
        const server = z.object({
          database: z.object({ schema_version: z.number(), server: z.object({ replicas: z.number() }) }),
        });
        await eventually('the other services are seen', async () => {
          const { out } = await typed('service', 'status', '--json', '-c', config);
          const { database } = server.parse(JSON.parse(out));
          return database.schema_version === schema.version && database.server.replicas === 1;
        });
        await stop();
        const sql = await openPostgres(
          { url: postgres.url, password: postgres.password },
          { prepares: false },
        );
        await sql.all(`CREATE ROLE weak LOGIN PASSWORD 'weak-passw0rd'`);
        await sql.all('GRANT SELECT ON ALL TABLES IN SCHEMA public TO weak');
        const weak_file = join(dir, 'weak');
        await writeFile(weak_file, 'weak-passw0rd', { mode: 0o600 });
        const weak = postgres.url.replace('//kit@', '//weak@');
        await write({ ...use, database: weak, database_password_file: weak_file });
        expect((await complaints(config)).join('\n')).toMatch(
          /^fail database rights: no permission to read and write .*api_keys/mu,
        );
        await write({ ...use, database: weak });
        expect(await complaints(config)).toContainEqual(
          expect.stringMatching(/^fail database: .*password authentication failed/u),
        );
        await write({ ...use, database_replicated: true });
        expect((await complaints(config)).join('\n')).toMatch(/^warn replication: /mu);
        await sql.close();
        await write({ ...use, database: `postgres://kit@127.0.0.1:${await freePort()}/postgres` });
        expect((await complaints(config)).join('\n')).toMatch(/^fail database: /mu);
      });
    },
  );
});
