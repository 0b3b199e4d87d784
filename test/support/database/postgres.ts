/** A real PostgreSQL as a child process on a free loopback port, with an empty database in a directory of its own. */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdir, rm, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client, type ClientConfig } from 'pg';
import { outlive } from '../outliving.ts';
import { dyingWithUs, program } from '../peers.ts';
import { eventually } from '../eventually.ts';
import { madeOnce } from '../service/made-once.ts';
import { makeDirectory, run } from '../temporary.ts';
import { freePort } from '../ports.ts';

export interface Postgres {
  /** `postgres://kit@127.0.0.1:PORT/postgres`; it asks for `password` (SCRAM). */
  readonly url: string;
  readonly password: string;
  /** Makes another database, empty or as `template` is, in a directory of its own where one is given, and answers its address. */
  newDatabase(name: string, options?: DatabaseChoice): Promise<string>;
  /** Directory of its files. */
  readonly data_dir: string;
  /** Of the server, whose connections are its children. */
  pid(): number;
  /** Takes all connections away, as a server does that restarts. */
  cutConnections(): Promise<void>;
  /** The server dies at once. */
  kill(): Promise<void>;
  /** Adds a setting, which a running server reads at once where it can. */
  set(name: string, value: string): Promise<void>;
  /** Makes a standby take writes. */
  promote(): Promise<void>;
  /** Starts again on the same port, with what it had. */
  start(): Promise<void>;
  /** Ends it and removes its directory. */
  stop(): Promise<void>;
}

interface DatabaseChoice {
  readonly tablespace_dir?: string;
  /** A database of this server that nobody is connected to. */
  readonly template?: string;
}

const start_ms = 60_000;
const superuser = 'kit';
/** Needs each kind of escape that an address has. */
export const postgres_password = 'p%41ss w:o/r@d?#&é';
/** The server refuses to run as root. */
const plain_user = 'postgres';

interface PostgresChoice {
  /** As in the field; else it does not wait for the disk, which tests need not either. */
  readonly durable?: boolean;
  /** Serves the next test files as well, and does not keep this process alive. */
  readonly outlives_file?: boolean;
  /** Begins as a standby of this server, under the name `application_name`. */
  readonly standby_of?: { readonly url: string; readonly application_name: string };
}

export async function startPostgres({
  durable = false,
  outlives_file = false,
  standby_of,
}: PostgresChoice = {}): Promise<Postgres> {
  const dir = await makeDirectory();
  const data = join(dir, 'data');
  await makeData(data);
  const asPlain =
    userInfo().uid === 0
      ? [program('setpriv'), '--reuid', plain_user, '--regid', plain_user, '--clear-groups', '--']
      : [];
  if (standby_of) await copyServer(standby_of, data, asPlain);
  else await initialise(data, asPlain);
  const port = await freePort();
  const url = `postgres://${superuser}@127.0.0.1:${port}/postgres`;
  let child: ChildProcess | undefined;
  const settings = [
    `port=${port}`,
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    'hot_standby=on',
  ];
  if (!durable) settings.push('fsync=off');
  const ask = async (sql: string): Promise<void> => {
    const client = new Client(clientOf(url));
    client.on('error', () => undefined);
    await client.connect();
    try {
      await client.query(sql);
    } finally {
      await client.end();
    }
  };
  const kill = async (): Promise<void> => {
    const dying = child;
    child = undefined;
    if (!dying || dying.exitCode !== null || dying.signalCode !== null) return;
    const exited = once(dying, 'exit');
    // SIGQUIT is its immediate shutdown: no goodbye, and recovery at the next start.
    dying.kill('SIGQUIT');
    await exited;
  };
  const postgres: Postgres = {
    url,
    password: postgres_password,
    data_dir: data,
    newDatabase: async (name, { tablespace_dir, template = 'template1' } = {}) => {
      if (tablespace_dir !== undefined)
        await ask(`CREATE TABLESPACE ${name}_space LOCATION '${tablespace_dir}'`);
      const place = tablespace_dir === undefined ? '' : `TABLESPACE ${name}_space`;
      // A copy of the template's files; as log records it would be 7 MB for each.
      const strategy = durable ? '' : 'STRATEGY FILE_COPY';
      await ask(`CREATE DATABASE ${name} TEMPLATE ${template} ${place} ${strategy}`);
      return url.replace(/postgres$/u, name);
    },
    pid: () => child?.pid ?? 0,
    cutConnections: async () =>
      ask(
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL',
      ),
    set: async (name, value) => {
      await ask(`ALTER SYSTEM SET ${name} = '${value}'`);
      await ask('SELECT pg_reload_conf()');
    },
    promote: async () => ask('SELECT pg_promote()'),
    kill,
    start: async () => {
      const flags = settings.flatMap((setting) => ['-c', setting]);
      // A change of the user clears the wish to die with us, so that comes second.
      const line = [...asPlain, ...dyingWithUs(), program('postgres'), '-D', data, ...flags];
      const [command = '', ...args] = line;
      child = spawn(command, args, { stdio: 'ignore' });
      if (outlives_file) outlive(child);
      await eventually(
        'PostgreSQL answers',
        async () =>
          ask('SELECT 1').then(
            () => true,
            () => false,
          ),
        start_ms,
      );
    },
    stop: async () => {
      await kill();
      await rm(dir, { recursive: true, force: true, maxRetries: 3 });
    },
  };
  try {
    await postgres.start();
    return postgres;
  } catch (error) {
    await postgres.stop();
    throw error;
  }
}

/** Copies a new server, which takes a third of what making one does. */
async function initialise(data: string, asPlain: readonly string[]): Promise<void> {
  const made = await madeOnce('postgres', async (dir) => {
    await makeData(dir);
    const secret = `${dir}-password`;
    await writeFile(secret, `${postgres_password}\n`, { mode: 0o644 });
    const access = ['-A', 'scram-sha-256', `--pwfile=${secret}`];
    const flags = ['-U', superuser, ...access, '--no-sync', '-E', 'UTF8', '--locale', 'C'];
    await runAs(asPlain, program('initdb'), '-D', dir, ...flags);
  });
  await runAs(asPlain, program('cp'), '-a', `${made}/.`, data);
}

/** A directory of the user that the server runs as. */
async function makeData(dir: string): Promise<void> {
  await mkdir(dir, { mode: 0o700 });
  if (userInfo().uid === 0) await chown(dir, ...(await idsOf(plain_user)));
}

/** Copies the files of a running server; the copy follows it. */
async function copyServer(
  { url, application_name }: { readonly url: string; readonly application_name: string },
  data: string,
  asPlain: readonly string[],
): Promise<void> {
  const { host, port, user } = clientOf(url);
  const quoted = postgres_password.replaceAll(/['\\]/gu, String.raw`\$&`);
  const primary = `host=${host} port=${port} user=${user} password='${quoted}' application_name=${application_name}`;
  const flags = ['-D', data, '-d', primary, '-R', '-X', 'stream', '-c', 'fast', '--no-sync'];
  await runAs(asPlain, program('pg_basebackup'), ...flags);
}

async function runAs(asPlain: readonly string[], ...line: readonly string[]): Promise<void> {
  const [first = '', ...words] = [...asPlain, ...line];
  await promisify(execFile)(first, words);
}

/** Settings of a plain client for this address of such a server. */
export function clientOf(url: string): ClientConfig {
  const { hostname: host, port, pathname, username: user } = new URL(url);
  return { host, port: Number(port), user, password: postgres_password, database: pathname.slice(1) };
}

async function idsOf(user: string): Promise<[uid: number, gid: number]> {
  const [uid, gid] = await Promise.all([run('id', '-u', user), run('id', '-g', user)]);
  return [Number(uid), Number(gid)];
}
