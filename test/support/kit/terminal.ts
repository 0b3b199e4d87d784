/** A command on a terminal of a given width: what a person sees of it. Needs `script` and `stty`. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { within } from '../../../src/platform/time.ts';
import { command_file } from './kit.ts';
import { dyingWithUs } from '../peers.ts';

const patience_ms = 60_000;

export interface OnTerminal {
  readonly code: number | null;
  /** Everything that was drawn, colours too. */
  readonly drawn: string;
}

export interface TerminalOptions {
  readonly columns: number;
  readonly env?: Readonly<Record<string, string>>;
  /** Ctrl-C is typed once this matches; left out: the command ends by itself. */
  readonly until?: RegExp;
}

/** Runs `kit-connector` with these words. */
export async function onTerminal(
  words: readonly string[],
  { columns, env = {}, until }: TerminalOptions,
): Promise<OnTerminal> {
  const quoted = [process.execPath, command_file, ...words].map((word) => `'${word}'`).join(' ');
  const command = `stty cols ${columns} rows 40 && exec ${quoted}`;
  const [first, ...rest] = [...dyingWithUs(), 'script', '-qec', command, '/dev/null'];
  const child = spawn(first, rest, {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, NO_COLOR: '', TERM: 'xterm', ...env },
  });
  let drawn = '';
  let isStopped = false;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    drawn += text;
    if (!until?.test(drawn) || isStopped) return;
    isStopped = true;
    child.stdin.write('\u0003');
  });
  const ended = await within(patience_ms, once(child, 'close'));
  if (!ended) {
    child.kill('SIGKILL');
    throw new Error(`no end within ${patience_ms / 1_000} s; drawn so far: ${drawn}`);
  }
  return { code: child.exitCode, drawn: drawn.replaceAll('\r\n', '\n') };
}
