/** RabbitMQ on free loopback ports, with MQTT and AMQP. */
import { type ChildProcess, execFile } from 'node:child_process';
import { once } from 'node:events';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Certificates } from '../certificates.ts';
import { program } from '../peers.ts';
import { makeDirectory } from '../temporary.ts';
import { end, type ErlangBroker, launch, runAll } from './erlang-brokers.ts';
import { freePort } from '../ports.ts';

/** The wrapper in /usr/sbin would change to a user of its own. */
const server = '/usr/lib/rabbitmq/bin/rabbitmq-server';

/** A killed node first recovers what it had, which takes its time. */
const start_ms = 300_000;

export interface Rabbitmq extends ErlangBroker {
  readonly amqp_url: string;
  /** Runs a line of a shell in which `rabbitmqctl` talks to it. */
  ctl(line: string): Promise<string>;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** Starts it again on the same ports, with what it had. */
  start(): Promise<void>;
}

/** `extra`: further lines of rabbitmq.conf. It closes the connection on a CONNECT of MQTT 5, and gives nothing retained to subscriptions with wildcards. */
export async function startRabbitmq(made?: Certificates, extra: readonly string[] = []): Promise<Rabbitmq> {
  const dir = await makeDirectory();
  const names_port = await freePort();
  const epmd = [program('epmd'), '-address', '127.0.0.1', '-port', String(names_port)];
  const stopNames = await runAll(dir, [{ command: epmd }]);
  const [port, ws_port] = [await freePort(), await freePort()];
  const [tls_port, wss_port] = [await freePort(), await freePort()];
  const [amqp_port, nodes_port] = [await freePort(), await freePort()];
  const { kill, start, ctl } = await nodeAt(
    dir,
    { mqtt_port: port, ws_port, tls_port, wss_port, amqp_port, nodes_port, names_port },
    { made, extra },
  );
  const stop = async (): Promise<void> => {
    await kill();
    await stopNames();
    await rm(dir, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    await start();
  } catch (error) {
    await stop();
    throw error;
  }
  const amqp_url = `amqp://127.0.0.1:${amqp_port}`;
  return {
    port,
    ws_port,
    tls_port,
    wss_port,
    amqp_url,
    ctl,
    username: 'guest',
    password: 'guest',
    kill,
    start,
    stop,
  };
}

interface Ports {
  readonly mqtt_port: number;
  readonly ws_port: number;
  readonly tls_port: number;
  readonly wss_port: number;
  readonly amqp_port: number;
  readonly nodes_port: number;
  readonly names_port: number;
}

async function nodeAt(
  dir: string,
  { mqtt_port, ws_port, tls_port, wss_port, amqp_port, nodes_port, names_port }: Ports,
  { made, extra }: { readonly made: Certificates | undefined; readonly extra: readonly string[] },
): Promise<Pick<Rabbitmq, 'kill' | 'start' | 'ctl'>> {
  await writeFile(join(dir, 'plugins'), '[rabbitmq_mqtt,rabbitmq_web_mqtt,rabbitmq_auth_mechanism_ssl].\n');
  const lines = [
    `listeners.tcp.1 = 127.0.0.1:${amqp_port}`,
    `mqtt.listeners.tcp.1 = 127.0.0.1:${mqtt_port}`,
    'web_mqtt.tcp.ip = 127.0.0.1',
    `web_mqtt.tcp.port = ${ws_port}`,
    ...(made ? tlsLines(made, tls_port, wss_port) : []),
    'loopback_users = none',
    'disk_free_limit.absolute = 1MB',
  ].filter((line) => !extra.some((each) => each.split(' ')[0] === line.split(' ')[0]));
  await writeFile(join(dir, 'rabbitmq.conf'), `${[...lines, ...extra].join('\n')}\n`);
  const env = {
    ERL_EPMD_PORT: String(names_port),
    ERL_EPMD_ADDRESS: '127.0.0.1',
    HOME: dir,
    // The script then becomes the server instead of keeping it as a child.
    RUNNING_UNDER_SYSTEMD: '1',
    RABBITMQ_NODENAME: `kit-connector-${mqtt_port}@localhost`,
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
    async ctl(line) {
      const path = `/usr/lib/rabbitmq/bin:${process.env['PATH'] ?? ''}`;
      const options = { env: { ...process.env, ...env, PATH: path }, cwd: dir };
      return (await promisify(execFile)('/bin/sh', ['-c', line], options)).stdout;
    },
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

function tlsLines({ ca, server: own }: Certificates, tls_port: number, wss_port: number): readonly string[] {
  const files = (at: string) => [
    `${at}.cacertfile = ${ca}`,
    `${at}.certfile = ${own.cert}`,
    `${at}.keyfile = ${own.key}`,
  ];
  return [
    `mqtt.listeners.ssl.1 = 127.0.0.1:${tls_port}`,
    ...files('ssl_options'),
    'web_mqtt.ssl.ip = 127.0.0.1',
    `web_mqtt.ssl.port = ${wss_port}`,
    ...files('web_mqtt.ssl'),
  ];
}
