/** A real mosquitto as a child process on a free loopback port, which tests can kill, start again and listen to. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { rm, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { within } from '../../../src/platform/time.ts';
import type { KeyPair } from '../certificates.ts';
import { dyingWithUs, program } from '../peers.ts';
import { makeDirectory, run } from '../temporary.ts';
import { freePort } from '../ports.ts';

/**
 * What both sides of a comparison get where a window of 64 is measured: mosquitto's own limits are out of the way.
 * Not 0, which means no limit too: mosquitto 2.0.11 then ends the connection of a client that it refused a message.
 */
export const unthrottled = ['max_inflight_messages 1000', 'max_queued_messages 1000000'] as const;

export interface BrokerOptions {
  /** Further lines of mosquitto.conf. */
  readonly conf?: readonly string[];
  /** Keeps sessions and retained messages on disk; `autosave_interval` in seconds. */
  readonly persistence?: { readonly autosave_interval_s: number };
  /** Serves TLS instead of plain TCP; asks for a client certificate when `client_ca` is given. */
  readonly tls?: { readonly ca: string; readonly pair: KeyPair; readonly client_ca?: boolean };
  /** Text of the ACL file. */
  readonly acl?: string;
  readonly passwords?: Readonly<Record<string, string>>;
  /** Listens on this unix socket too, without TLS: for a witness whose traffic must not be counted. */
  readonly socket?: string;
  /** Put before the command line: `ip netns exec NAME`. */
  readonly prefix?: readonly string[];
  /** Stops the broker when it aborts. */
  readonly signal?: AbortSignal;
}

export interface Broker {
  readonly port: number;
  /** `mqtt://127.0.0.1:PORT` or `mqtts://localhost:PORT`. */
  readonly url: string;
  /** Everything that was printed so far, over all restarts. */
  log(): string;
  /** Resolves once a line of the log matches; rejects after `ms`. */
  logged(pattern: RegExp, ms?: number): Promise<void>;
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Starts again on the same port after a kill. */
  start(): Promise<void>;
  /** Replaces the passwords and tells the broker to read them. */
  setPasswords(passwords: Readonly<Record<string, string>>): Promise<void>;
  /** Replaces the access rules, likewise. */
  setAcl(acl: string): Promise<void>;
  /** Ends the broker and removes its directory. */
  stop(): Promise<void>;
}

const start_ms = 60_000;
const start_attempts = 5;
const log_chars_max = 1_000_000;

/** Starts mosquitto; rejects with what it printed when it does not come up. */
export async function startMosquitto(options: BrokerOptions = {}): Promise<Broker> {
  for (let attempt = 1; ; attempt++) {
    const broker = await prepare(options);
    try {
      await broker.start();
      options.signal?.addEventListener('abort', () => void broker.stop(), { once: true });
      return broker;
    } catch (error) {
      await broker.stop();
      const taken = broker.log().includes('Address already in use');
      if (!taken || attempt >= start_attempts) throw error;
    }
  }
}

async function prepare(options: BrokerOptions): Promise<Broker> {
  const dir = await makeDirectory();
  const port = await freePort();
  const conf = join(dir, 'mosquitto.conf');
  const passwords = join(dir, 'passwords');
  await writeFile(conf, configuration(options, dir, port));
  if (options.acl !== undefined) await writeFile(join(dir, 'acl'), options.acl, { mode: 0o600 });
  if (options.passwords) await writePasswords(passwords, options.passwords);
  const [command, ...args] = [...(options.prefix ?? []), ...dyingWithUs(), program('mosquitto'), '-c', conf];
  const output = printed();
  let child: ChildProcess | undefined;

  const kill = async (signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
    const dying = child;
    child = undefined;
    if (!dying || dying.exitCode !== null || dying.signalCode !== null) return;
    const exited = once(dying, 'exit');
    dying.kill(signal);
    await exited;
  };
  return {
    port,
    url: options.tls ? `mqtts://localhost:${port}` : `mqtt://127.0.0.1:${port}`,
    log: output.text,
    logged: output.until,
    kill,
    async start() {
      const from = output.text().length;
      child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] });
      child.stderr?.on('data', (chunk: Buffer) => output.add(chunk.toString()));
      const exit = once(child, 'exit').then(() => {
        throw new Error(`mosquitto ended at start: ${output.text().slice(from)}`);
      });
      exit.catch(() => undefined);
      await Promise.race([output.until(/ running$/m, start_ms, from), exit]);
    },
    async setPasswords(next) {
      await writePasswords(passwords, next);
      child?.kill('SIGHUP');
    },
    async setAcl(acl) {
      await writeFile(join(dir, 'acl'), acl);
      child?.kill('SIGHUP');
    },
    async stop() {
      await kill();
      await rm(dir, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

function configuration(options: BrokerOptions, dir: string, port: number): string {
  const { tls, acl, passwords, persistence, socket } = options;
  const lines = [
    `user ${userInfo().username}`,
    'log_dest stderr',
    'log_timestamp false',
    'per_listener_settings false',
    'set_tcp_nodelay true',
  ];
  for (const type of ['error', 'warning', 'notice', 'information']) lines.push(`log_type ${type}`);
  lines.push(`allow_anonymous ${passwords === undefined}`);
  if (passwords) lines.push(`password_file ${dir}/passwords`);
  if (acl !== undefined) lines.push(`acl_file ${dir}/acl`);
  if (persistence) {
    lines.push('persistence true', `persistence_location ${dir}/`);
    lines.push(`autosave_interval ${persistence.autosave_interval_s}`);
  }
  if (socket !== undefined) lines.push(`listener 0 ${socket}`);
  lines.push(`listener ${port} 127.0.0.1`);
  if (tls) {
    lines.push(`cafile ${tls.ca}`, `certfile ${tls.pair.cert}`, `keyfile ${tls.pair.key}`);
    if (tls.client_ca) lines.push('require_certificate true', 'use_identity_as_username true');
  }
  // Behind the listener, so that settings of a listener belong to it.
  lines.push(...(options.conf ?? []));
  return `${lines.join('\n')}\n`;
}

async function writePasswords(file: string, passwords: Readonly<Record<string, string>>): Promise<void> {
  await writeFile(file, '', { mode: 0o600 });
  for (const [user, password] of Object.entries(passwords)) {
    await run('mosquitto_passwd', '-b', file, user, password);
  }
}

interface Printed {
  readonly text: () => string;
  readonly add: (chunk: string) => void;
  readonly until: (pattern: RegExp, ms?: number, from?: number) => Promise<void>;
}

/** What a process prints, kept up to a limit, and waiters for patterns in it. */
function printed(): Printed {
  let text = '';
  const waiters = new Set<() => void>();
  return {
    text: () => text,
    add(chunk: string): void {
      if (text.length < log_chars_max) text += chunk;
      for (const look of waiters) look();
    },
    async until(pattern: RegExp, ms = start_ms, from = 0): Promise<void> {
      const found = Promise.withResolvers<true>();
      const look = (): void => {
        if (pattern.test(text.slice(from))) found.resolve(true);
      };
      waiters.add(look);
      look();
      const seen = await within(ms, found.promise);
      waiters.delete(look);
      if (!seen) throw new Error(`no ${pattern} within ${ms} ms in: ${text.slice(from)}`);
    },
  };
}
