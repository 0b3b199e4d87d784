/** A PostgreSQL of several servers by Patroni, with etcd and HAProxy, from the samples of `systemd/database`, on free loopback ports. */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { realpathSync } from 'node:fs';
import { chmod, chown, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Client, DatabaseError } from 'pg';
import { z } from 'zod';
import { messageOf } from '../../../src/platform/errors.ts';
import { eventually } from '../../support/eventually.ts';
import { dyingWithUs, program } from '../../support/peers.ts';
import { makeDirectory, run } from '../../support/temporary.ts';
import { freePort } from '../../support/ports.ts';

const password = 'CHANGE-THIS';
const starts_within_ms = 180_000;
/** SQLSTATE: the database exists. */
const exists_already = '42P04';
const samples = new URL('../../../systemd/database/', import.meta.url);

export interface PatroniCluster {
  /** Through HAProxy, which asks Patroni for the primary. */
  readonly url: string;
  readonly password: string;
  /** Kills the leader: Patroni and its PostgreSQL, SIGKILL both. Returns how to start it again. */
  killLeader(): Promise<() => Promise<void>>;
  /**
   * Resolves when all servers have the timeline of the leader and one of them is its synchronous standby. A killed server that is not
   * back leaves the next leader without a standby until it is rewound, and writes wait for that, half a minute and more.
   */
  healthy(): Promise<void>;
  stop(): Promise<void>;
}

interface Server {
  readonly name: string;
  readonly rest: number;
  readonly data: string;
  child: ChildProcess | undefined;
  readonly start: () => void;
}

const members = z.looseObject({
  members: z.array(
    z.looseObject({ name: z.string(), role: z.string(), state: z.string(), timeline: z.int().optional() }),
  ),
});

/** `servers` of PostgreSQL; one etcd, which is not what is killed. */
export async function startPatroni(servers: number): Promise<PatroniCluster> {
  const dir = await makeDirectory();
  await chmod(dir, 0o755);
  const [uid, gid] = [Number(await run('id', '-u', 'postgres')), Number(await run('id', '-g', 'postgres'))];
  const running: ChildProcess[] = [];
  const launch = (command: readonly string[]): ChildProcess => {
    const [file = '', ...args] = command;
    const child = spawn(file, args, { stdio: 'ignore', cwd: dir });
    running.push(child);
    return child;
  };
  const etcd = await startEtcd(dir, launch);
  const sample = await readFile(new URL('patroni.yml', samples), 'utf8');
  const cluster = await Promise.all(
    Array.from({ length: servers }, async (_, at): Promise<Server> => {
      const [rest, port, name] = [await freePort(), await freePort(), `db${at + 1}`];
      const [home, config] = [join(dir, name), join(dir, `${name}.yml`)];
      await mkdir(home, { mode: 0o700 });
      await chown(home, uid, gid);
      const text = sample
        .replaceAll('10.0.0.11:8008', `127.0.0.1:${rest}`)
        .replaceAll('10.0.0.11:5432', `127.0.0.1:${port}`)
        .replace(/hosts: \[[^\]]*\]/u, `hosts: ['127.0.0.1:${etcd}']`)
        .replaceAll('10.0.0.0/24', '127.0.0.1/32')
        .replace('name: db1', `name: ${name}`)
        .replace('/usr/lib/postgresql/15/bin', dirname(realpathSync(program('postgres'))))
        .replace('/var/lib/postgresql/15/kits', join(home, 'data'))
        .replace(
          '  authentication:',
          `  parameters: { unix_socket_directories: '${home}' }\n  pgpass: ${join(home, 'pgpass')}\n  authentication:`,
        );
      await writeFile(config, text, { mode: 0o644 });
      const asPostgres = ['setpriv', '--reuid', 'postgres', '--regid', 'postgres', '--clear-groups', '--'];
      const line = [...asPostgres, ...dyingWithUs(), program('patroni'), config];
      const server: Server = {
        name,
        rest,
        data: join(home, 'data'),
        child: undefined,
        start: () => (server.child = launch(line)),
      };
      return Object.assign(server, { port });
    }),
  );
  const url = await startHaproxy(dir, cluster, launch);
  for (const server of cluster) server.start();
  const roles = async () => {
    for (const { rest } of cluster) {
      const answer = await fetch(`http://127.0.0.1:${rest}/cluster`).catch(() => undefined);
      const read = members.safeParse(await answer?.json().catch(() => undefined)).data;
      if (read) return read.members;
    }
    return [];
  };
  const healthy = async (): Promise<void> =>
    eventually(
      'a leader and standbys of its timeline, one of them synchronous',
      async () => {
        const now = await roles();
        const leader = now.find(({ role }) => role === 'leader');
        const following = now.filter(
          ({ timeline }) => timeline !== undefined && timeline === leader?.timeline,
        );
        return following.length === servers && now.some(({ role }) => role === 'sync_standby');
      },
      starts_within_ms,
    );
  const stop = async (): Promise<void> => {
    for (const server of cluster) await killServer(server);
    for (const child of running.toReversed()) await killed(child);
    await rm(dir, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    await healthy();
    await askOnce(url, 'CREATE DATABASE kits');
    return {
      url: url.replace(/postgres$/u, 'kits'),
      password,
      healthy,
      async killLeader() {
        const leader = (await roles()).find(({ role }) => role === 'leader');
        const server = cluster.find(({ name }) => name === leader?.name);
        if (!server) throw new Error('no leader');
        await killServer(server);
        return async () => {
          server.start();
          await healthy();
        };
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

type Launch = (command: readonly string[]) => ChildProcess;

async function startEtcd(dir: string, launch: Launch): Promise<number> {
  const [clients, peers] = [await freePort(), await freePort()];
  const [at, peer] = [`http://127.0.0.1:${clients}`, `http://127.0.0.1:${peers}`];
  const flags = ['--name', 'one', '--data-dir', join(dir, 'etcd'), '--listen-client-urls', at];
  const more = [
    '--advertise-client-urls',
    at,
    '--listen-peer-urls',
    peer,
    '--initial-advertise-peer-urls',
    peer,
  ];
  launch([...dyingWithUs(), program('etcd'), ...flags, ...more, '--initial-cluster', `one=${peer}`]);
  return clients;
}

/** Returns the address of the database `postgres`. */
async function startHaproxy(dir: string, cluster: readonly Server[], launch: Launch): Promise<string> {
  const port = await freePort();
  const config = join(dir, 'haproxy.cfg');
  const sample = await readFile(new URL('haproxy.cfg', samples), 'utf8');
  const servers = cluster.map((each) => {
    const { port: to } = z.object({ port: z.int() }).parse(each);
    return `    server ${each.name} 127.0.0.1:${to} check port ${each.rest}`;
  });
  const text = sample
    .replaceAll('127.0.0.1:5000', `127.0.0.1:${port}`)
    .replace(/(?: {4}server db\d .*\n)+/u, `${servers.join('\n')}\n`);
  await writeFile(config, text);
  launch([...dyingWithUs(), program('haproxy'), '-db', '-f', config]);
  return `postgres://postgres@127.0.0.1:${port}/postgres`;
}

/** Patroni first, or it would start its server again. */
async function killServer({ child, data }: Server): Promise<void> {
  if (child) await killed(child);
  const pid = Number((await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => '0')).split('\n')[0]);
  if (pid <= 1) return;
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
  await rm(join(data, 'postmaster.pid'), { force: true });
}

async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

async function askOnce(url: string, sql: string): Promise<void> {
  const { hostname: host, port } = new URL(url);
  const login = { user: 'postgres', password, database: 'postgres' };
  let last: unknown;
  await eventually(
    'the database answers',
    async () => {
      const client = new Client({ host, port: Number(port), ...login });
      client.on('error', () => undefined);
      try {
        await client.connect();
        await client.query(sql);
        return true;
      } catch (error) {
        last = error;
        // An attempt before this one succeeded, and its answer was lost.
        return error instanceof DatabaseError && error.code === exists_already;
      } finally {
        await client.end().catch(() => undefined);
      }
    },
    starts_within_ms,
  ).catch((error: unknown) => {
    throw new Error(`${sql}: ${messageOf(last)}`, { cause: error });
  });
}
