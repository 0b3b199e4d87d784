/** RabbitMQ on free loopback ports: one node, or a cluster whose nodes can be killed, with MQTT and AMQP. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { program } from '../peers.ts';
import { makeDirectory } from '../temporary.ts';
import { end, type ErlangBroker, launch, runAll } from './erlang-brokers.ts';
import { freePort } from '../ports.ts';

/** The wrapper in /usr/sbin would change to a user of its own. */
const server = '/usr/lib/rabbitmq/bin/rabbitmq-server';

/** A killed node first recovers what it had, and waits for the others. */
const start_ms = 300_000;

export interface RabbitNode {
  readonly mqtt_port: number;
  readonly amqp_url: string;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** Starts it again on the same ports, with what it had. */
  start(): Promise<void>;
}

export interface RabbitCluster {
  readonly nodes: readonly RabbitNode[];
  readonly username: string;
  readonly password: string;
  stop(): Promise<void>;
}

export interface Rabbitmq extends ErlangBroker, Pick<RabbitNode, 'amqp_url' | 'kill' | 'start'> {}

/** It closes the connection on a CONNECT of MQTT 5, and gives nothing retained to subscriptions with wildcards. */
export async function startRabbitmq(): Promise<Rabbitmq> {
  const cluster = await startRabbitCluster(1);
  const { username, password } = cluster;
  const [node] = cluster.nodes;
  if (!node) throw new Error('no node');
  return {
    port: node.mqtt_port,
    amqp_url: node.amqp_url,
    username,
    password,
    kill: async () => node.kill(),
    start: async () => node.start(),
    stop: async () => cluster.stop(),
  };
}

export async function startRabbitCluster(size: number): Promise<RabbitCluster> {
  const dir = await makeDirectory();
  const names_port = await freePort();
  const epmd = [program('epmd'), '-address', '127.0.0.1', '-port', String(names_port)];
  const stopNames = await runAll(dir, [{ command: epmd }]);
  const places = await Promise.all(
    Array.from({ length: size }, async () => ({
      mqtt_port: await freePort(),
      amqp_port: await freePort(),
      nodes_port: await freePort(),
    })),
  );
  const names = places.map(({ mqtt_port }) => `kit-connector-${mqtt_port}@localhost`);
  const nodes = await Promise.all(
    places.map(async (place, at) =>
      nodeAt({ ...place, dir: join(dir, String(at)), home: dir, names, at, names_port }),
    ),
  );
  const stop = async (): Promise<void> => {
    for (const node of nodes) await node.kill();
    await stopNames();
    await rm(dir, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    // The first one makes the cookie and the cluster that the others join.
    const [first, ...others] = nodes;
    await first?.start();
    await Promise.all(others.map(async (node) => node.start()));
    return { nodes, username: 'guest', password: 'guest', stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

interface Place {
  readonly dir: string;
  /** Of the cookie, which all nodes share. */
  readonly home: string;
  readonly mqtt_port: number;
  readonly amqp_port: number;
  readonly nodes_port: number;
  readonly names_port: number;
  readonly names: readonly string[];
  readonly at: number;
}

async function nodeAt({ dir, home, names, at, ...ports }: Place): Promise<RabbitNode> {
  const { mqtt_port, amqp_port, nodes_port, names_port } = ports;
  await mkdir(dir, { recursive: true });
  await writeFile(join(dir, 'plugins'), '[rabbitmq_mqtt].\n');
  const lines = [
    `listeners.tcp.1 = 127.0.0.1:${amqp_port}`,
    `mqtt.listeners.tcp.1 = 127.0.0.1:${mqtt_port}`,
    'loopback_users = none',
    'disk_free_limit.absolute = 1MB',
    ...(names.length > 1
      ? [
          'cluster_formation.peer_discovery_backend = classic_config',
          ...names.map((name, n) => `cluster_formation.classic_config.nodes.${n + 1} = ${name}`),
          'mqtt.durable_queue_type = quorum',
        ]
      : []),
  ];
  await writeFile(join(dir, 'rabbitmq.conf'), `${lines.join('\n')}\n`);
  const env = {
    ERL_EPMD_PORT: String(names_port),
    ERL_EPMD_ADDRESS: '127.0.0.1',
    HOME: home,
    // The script then becomes the server instead of keeping it as a child.
    RUNNING_UNDER_SYSTEMD: '1',
    RABBITMQ_NODENAME: names[at] ?? '',
    RABBITMQ_DIST_PORT: String(nodes_port),
    RABBITMQ_MNESIA_BASE: join(dir, 'mnesia'),
    RABBITMQ_LOG_BASE: join(dir, 'log'),
    RABBITMQ_LOGS: '-',
    RABBITMQ_CONFIG_FILE: join(dir, 'rabbitmq'),
    RABBITMQ_ADVANCED_CONFIG_FILE: join(dir, 'none'),
    RABBITMQ_CONF_ENV_FILE: join(dir, 'none'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(dir, 'plugins'),
    RABBITMQ_PID_FILE: join(dir, 'pid'),
  };
  let child: ChildProcess | undefined;
  return {
    mqtt_port,
    amqp_url: `amqp://127.0.0.1:${amqp_port}`,
    async kill() {
      const dying = child;
      child = undefined;
      if (!dying || dying.exitCode !== null || dying.signalCode !== null) return;
      const exited = once(dying, 'exit');
      dying.kill('SIGKILL');
      await exited;
    },
    async start() {
      const launched = launch(dir, { command: [server], env, started: /Server startup complete/u }, start_ms);
      child = launched.child;
      await launched.running.catch(async (error: unknown) => {
        await end(launched.child);
        throw error;
      });
    },
  };
}
