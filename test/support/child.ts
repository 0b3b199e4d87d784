/** A child process whose output is kept, line by line, and can be waited for. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { z } from 'zod';
import { within } from '../../src/platform/time.ts';
import { source_flags } from '../node-flags.ts';
import { dyingWithUs } from './peers.ts';

export interface Ended {
  /** Exit code, or the name of the signal that ended it. */
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

/** A line of a log that is written as JSON. */
const logLine = z.looseObject({ level: z.string(), time: z.iso.datetime(), msg: z.string() });
export type LogLine = z.output<typeof logLine>;

export interface Child {
  readonly pid: number;
  /** Everything that was printed so far, both streams. */
  output(): string;
  /** The lines of the log so far, those that are no JSON left out. */
  log(): readonly LogLine[];
  /** Resolves with the first text, printed already or yet to come, that matches; rejects after `ms` or at the child's end. */
  printed(pattern: RegExp, ms?: number): Promise<string>;
  send(signal: NodeJS.Signals): void;
  readonly ended: Promise<Ended>;
  /** Sends the signal and waits for the end. */
  end(signal: NodeJS.Signals): Promise<Ended>;
}

/** Bounds a hang; a busy machine may need much of it. */
const patience_ms = 60_000;

/** Starts `node` with these arguments; everything in `env` is added to the environment. */
export function startChild(
  args: readonly string[],
  {
    env = {},
    prefix = [],
    program: started = [process.execPath, ...source_flags],
  }: {
    readonly env?: Readonly<Record<string, string>>;
    /** Put before the command line: `ip netns exec NAME`. */
    readonly prefix?: readonly string[];
    /** Left out: `node`. */
    readonly program?: readonly string[];
  } = {},
): Child {
  const [command = '', ...words] = [...dyingWithUs(), ...prefix, ...started, ...args];
  const child = spawn(command, words, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  // A test process that ends in the middle must not leave a daemon behind, wherever there is no setpriv too.
  const orphaned = (): void => void child.kill('SIGKILL');
  process.once('exit', orphaned);

  const printed = { stdout: '', stderr: '' };
  const waiters = new Set<() => void>();
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8');
    child[stream].on('data', (text: string) => {
      printed[stream] += text;
      for (const look of waiters) look();
    });
  }
  const output = (): string => printed.stdout + printed.stderr;
  const ended = once(child, 'close').then((): Ended => {
    process.off('exit', orphaned);
    for (const look of waiters) look();
    return { code: child.exitCode ?? child.signalCode ?? '', ...printed };
  });
  return {
    pid: child.pid ?? 0,
    output,
    log: () => printed.stdout.split('\n').flatMap(readLine),
    async printed(pattern, ms = patience_ms) {
      const found = Promise.withResolvers<string>();
      const look = (): void => {
        const [match] = pattern.exec(output()) ?? [];
        if (match !== undefined) found.resolve(match);
        else if (child.exitCode !== null || child.signalCode !== null)
          found.reject(new Error(`ended before it printed ${pattern}: ${output()}`));
      };
      waiters.add(look);
      look();
      const match = await within(ms, found.promise);
      waiters.delete(look);
      if (match === undefined) throw new Error(`no ${pattern} within ${ms} ms in: ${output()}`);
      return match;
    },
    send: (signal) => void child.kill(signal),
    ended,
    async end(signal) {
      child.kill(signal);
      return ended;
    },
  };
}

function readLine(line: string): LogLine[] {
  try {
    return [logLine.parse(JSON.parse(line))];
  } catch {
    return [];
  }
}
