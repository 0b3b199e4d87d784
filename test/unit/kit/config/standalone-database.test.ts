/** Where the service that runs alone keeps its data: a file, or a PostgreSQL that replicas share. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readDatabase, readStandalone } from '../../../../src/kit/config/standalone.ts';
import { ConfigInvalid } from '../../../../src/platform/errors.ts';
import { testDirectory } from '../../../support/test-directory.ts';

const url = 'postgres://kits@db.example.com:5432/kits?sslmode=verify-full';

/** The section of a queue of RabbitMQ at this address. */
function queue(address: string): string {
  return `{ amqp: { urls: ['${address}'], password_file: secrets/db } }`;
}

/** What `work` makes of a file with these lines beside the broker's; faults as one text. */
async function reading<T>(lines: string, work: (file: string) => Promise<T>): Promise<T | string> {
  const dir = await testDirectory();
  const broker = lines.startsWith('ingest:') ? '' : "broker: { url: 'mqtt://127.0.0.1:1883' }\n";
  await mkdir(join(dir, 'secrets'));
  await writeFile(join(dir, 'secrets/db'), 'se cret\n', { mode: 0o600 });
  const file = join(dir, 'service.yaml');
  await writeFile(file, `${broker}${lines}\n`);
  return work(file).catch((error: unknown) => {
    if (error instanceof ConfigInvalid) return error.faults.join('\n');
    throw error;
  });
}

it('takes an address of PostgreSQL, its password from a file, and a shared subscription with client ids that differ', async () => {
  const lines = `database: ${url}\ndatabase_password_file: secrets/db\nshare: kits-1`;
  const read = async (): Promise<unknown> => reading(lines, async (file) => readStandalone(file, undefined));
  const [one, two] = [await read(), await read()];
  const database = { kind: 'postgres', url, password: 'se cret', isReplicated: false };
  expect(one).toMatchObject({
    database,
    share: 'kits-1',
  });
  expect([one, two].map((each) => JSON.stringify(each))).toSatisfy((texts: string[]) =>
    texts.every((text) => /"client_id":"kit-service-\w{8}"/u.test(text)),
  );
  expect(one).not.toEqual(two);
});

it('takes an address of several servers of one database', async () => {
  const several = 'postgres://kits@db1:5432,[fd00::2]:5433/kits?sslmode=require';
  const lines = `database: '${several}'\ndatabase_replicated: true`;
  const read = await reading(lines, async (file) => readStandalone(file, undefined));
  expect(read).toMatchObject({ database: { kind: 'postgres', url: several, isReplicated: true } });
});

it('takes a queue of RabbitMQ in place of a broker, and warns of a password that crosses a network unencrypted', async () => {
  const lines = `ingest: ${queue('amqp://rabbit.example.com:5672')}`;
  const read = await reading(lines, async (file) => readStandalone(file, undefined));
  expect(read).toMatchObject({
    broker: undefined,
    amqp: {
      urls: ['amqp://rabbit.example.com:5672'],
      username: 'cloud',
      password: 'se cret',
      queue: 'kit-service',
      exchange: 'amq.topic',
    },
    warnings: [expect.stringContaining('write amqps://')],
  });
});

it('names what is missing where neither a broker nor a queue is configured', async () => {
  const dir = await testDirectory();
  const file = join(dir, 'service.yaml');
  await writeFile(file, 'database: kits.db\n');
  await expect(readStandalone(file, undefined)).rejects.toMatchObject({
    faults: [expect.stringContaining('broker.url')],
  });
});

it('keeps the client id of a single service, so that the broker resumes its session', async () => {
  const read = await reading('database: ./x/kits.db', async (file) => readStandalone(file, undefined));
  expect(read).toMatchObject({ client_id: 'kit-service', share: undefined, database: { kind: 'sqlite' } });
});

it.each([
  ['share: kits', 'share', 'PostgreSQL'],
  [
    `ingest: ${queue('amqp://one:5672')}\nbroker: { url: 'mqtt://127.0.0.1' }`,
    'ingest',
    'remove one of the two',
  ],
  [`ingest: ${queue('amqp://one:5672')}\nshare: kits`, 'share', 'remove it'],
  [`ingest: ${queue('mqtt://one:1883')}`, 'urls', 'amqps://rabbit.example.com:5671'],
  [`ingest: ${queue('amqps://me:secret@one')}`, 'urls', 'separate keys'],
  [`ingest: ${queue('amqps://one').replace('secrets/db', 'none')}`, 'password_file', 'cannot be read'],
  ['database_replicated: true', 'database_replicated', 'PostgreSQL'],
  ['database: postgres://kits:secret@db1,db2/kits', 'database', 'database_password_file'],
  ['database: postgres://kits@db1,db2:99999/kits', 'database', 'postgres://user@host:5432/name'],
  [`database: ${url}\nshare: a/b`, 'share', 'letters, digits'],
  ['database: postgres://kits:secret@db/kits', 'database', 'database_password_file'],
  ['database: postgres://kits@db/kits?password=secret@', 'database', 'database_password_file'],
  ['database: "postgres://kits@:99999/x"', 'database', 'postgres://user@host:5432/name'],
  [
    `database: ${url}\ndatabase_password_file: secrets/none`,
    'database_password_file',
    'cannot be read (no such file or directory)',
  ],
])('names the fault of %j', async (lines, key, remedy) => {
  const fault = await reading(lines, async (file) => readStandalone(file, undefined));
  expect(fault).toContain(key);
  expect(fault).toContain(remedy);
  expect(fault).not.toContain('secret@');
});

it('the commands for keys take the database of the file, or another one that is named', async () => {
  const lines = `database: ${url}\ndatabase_password_file: secrets/db\nshare: kits`;
  const named = async (database: string | undefined): Promise<unknown> =>
    reading(lines, async (file) => readDatabase(file, database));
  expect(await named(undefined)).toEqual({
    kind: 'postgres',
    url,
    password: 'se cret',
    isReplicated: false,
  });
  expect(await named('/tmp/other.db')).toEqual({ kind: 'sqlite', file: '/tmp/other.db' });
  expect(await named('postgresql://a@b/c')).toEqual({
    kind: 'postgres',
    url: 'postgresql://a@b/c',
    password: undefined,
    isReplicated: false,
  });
});
