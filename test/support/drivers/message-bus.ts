/** A private message bus: Debian's dbus-daemon as a child process, which tests can kill, stop and start again at one address. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { dyingWithUs, program } from '../peers.ts';
import { makeDirectory } from '../temporary.ts';

export interface MessageBusDaemon {
  readonly address: string;
  start(): Promise<void>;
  /** The daemon dies; so do all connections. */
  kill(): Promise<void>;
  /** It takes connections and answers nothing, until `thaw`. */
  freeze(): void;
  thaw(): void;
  /** Kills it and removes its directory. */
  stop(): Promise<void>;
}

/** A bus whose daemon is not started yet. */
export async function makeMessageBus(): Promise<MessageBusDaemon> {
  const dir = await makeDirectory();
  const path = join(dir, 'bus');
  const address = `unix:path=${path}`;
  let child: ChildProcess | undefined;
  const kill = async (): Promise<void> => {
    const dying = child;
    child = undefined;
    if (dying && dying.exitCode === null && dying.signalCode === null) {
      const exited = once(dying, 'exit');
      dying.kill('SIGKILL');
      await exited;
    }
    await rm(path, { force: true });
  };
  return {
    address,
    kill,
    async start() {
      if (child) return;
      const args = ['--session', `--address=${address}`, '--nofork', '--nopidfile', '--print-address=1'];
      const [command = '', ...rest] = [...dyingWithUs(), program('dbus-daemon'), ...args];
      const started = spawn(command, rest, { stdio: ['ignore', 'pipe', 'ignore'] });
      child = started;
      const ended = once(started, 'exit').then(() => {
        throw new Error('dbus-daemon ended at start');
      });
      ended.catch(() => undefined);
      // It prints its address once it listens.
      await Promise.race([once(started.stdout, 'data'), ended]);
    },
    freeze: () => void child?.kill('SIGSTOP'),
    thaw: () => void child?.kill('SIGCONT'),
    async stop() {
      await kill();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
