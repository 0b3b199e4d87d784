/** ejabberd as a child process on free loopback ports in a directory of its own, and what it has in common with RabbitMQ. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { within } from '../../../src/platform/time.ts';
import { eventually } from '../eventually.ts';
import { dyingWithUs, program } from '../peers.ts';
import { makeDirectory } from '../temporary.ts';
import type { Certificates } from '../certificates.ts';
import { freePort } from '../ports.ts';

export interface ErlangBroker {
  readonly port: number;
  /** Of MQTT over WebSocket. */
  readonly ws_port: number;
  /** Of both with TLS; nothing listens there without certificates. */
  readonly tls_port: number;
  readonly wss_port: number;
  readonly username: string;
  readonly password: string;
  stop(): Promise<void>;
}

/** An Erlang machine that loads hundreds of modules, on a busy machine. */
const start_ms = 100_000;
const stop_ms = 5_000;
const log_chars_max = 1_000_000;
export interface Program {
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly started?: RegExp;
}

/** Runs programs one after the other; answers what ends them, and removes the directory. */
export async function runAll(dir: string, programs: readonly Program[]): Promise<() => Promise<void>> {
  const children: ChildProcess[] = [];
  const stop = async (): Promise<void> => {
    for (const child of children.toReversed()) await end(child);
    await rm(dir, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    for (const each of programs) {
      const { child, running } = launch(dir, each);
      children.push(child);
      await running;
    }
    return stop;
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Starts a program; `running` resolves when it prints that it has started, and rejects after `within_ms`. */
export function launch(
  dir: string,
  { command, env, started }: Program,
  within_ms = start_ms,
): { readonly child: ChildProcess; readonly running: Promise<void> } {
  const [file = '', ...args] = [...dyingWithUs(), ...command];
  const child = spawn(file, args, {
    cwd: dir,
    env: { ...process.env, HOME: dir, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  const note = (chunk: Buffer): void => {
    if (text.length < log_chars_max) text += chunk.toString();
  };
  child.stdout.on('data', note);
  child.stderr.on('data', note);
  const running = eventually(
    `${file} runs`,
    () => {
      if (child.exitCode !== null) throw new Error(`${args.join(' ')} ended: ${text.slice(-2_000)}`);
      return started === undefined || started.test(text);
    },
    within_ms,
  );
  return { child, running };
}

export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  if ((await within(stop_ms, exited)) !== undefined) return;
  child.kill('SIGKILL');
  await exited;
}

export async function startEjabberd(made?: Certificates): Promise<ErlangBroker> {
  const dir = await makeDirectory();
  const [port, ws_port] = [await freePort(), await freePort()];
  const [tls_port, wss_port] = [await freePort(), await freePort()];
  const config = join(dir, 'ejabberd.yml');
  await mkdir(join(dir, 'spool'));
  const mqtt = { ip: '127.0.0.1', module: 'mod_mqtt' };
  const web = { ip: '127.0.0.1', module: 'ejabberd_http', request_handlers: { '/mqtt': 'mod_mqtt' } };
  // JSON is YAML.
  await writeFile(
    config,
    JSON.stringify({
      hosts: ['localhost'],
      loglevel: 'info',
      ...(made && { certfiles: [made.server.cert, made.server.key] }),
      listen: [
        { ...web, port: ws_port },
        ...(made
          ? [
              { ...web, port: wss_port, tls: true },
              { ...mqtt, port: tls_port, tls: true },
            ]
          : []),
        { ...mqtt, port },
      ],
      modules: {
        mod_mqtt: {
          access_publish: { 'k1/#': [{ allow: 'all' }] },
          access_subscribe: { 'k1/#': [{ allow: 'all' }] },
        },
      },
      auth_method: ['anonymous'],
      anonymous_protocol: 'login_anon',
      allow_multiple_connections: true,
    }),
  );
  const env = {
    EJABBERD_CONFIG_PATH: config,
    EJABBERD_LOG_PATH: join(dir, 'ejabberd.log'),
    ERL_LIBS: '/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu',
  };
  const command = [program('erl'), '-noinput', '-start_epmd', 'false'];
  const started = new RegExp(`Start accepting T[A-Z]+ connections at 127.0.0.1:${port} for mod_mqtt`, 'u');
  const stop = await runAll(dir, [
    { command: [...command, '-mnesia', 'dir', `"${join(dir, 'spool')}"`, '-s', 'ejabberd'], env, started },
  ]);
  // It knows no passwords, and accepts any but an empty one.
  return { port, ws_port, tls_port, wss_port, username: 'guest', password: 'any', stop };
}
