/** The edge of the process: arguments, environment, signals and exit codes. */
import './node-version.mjs';
import { flushCompileCache } from 'node:module';
import { constants } from 'node:os';
import { terminalAsk } from './cli/terminal/ask.ts';
import type { Shell } from './cli/terminal/shell.ts';
import { allowSlowLinks } from './platform/address-attempts.ts';

allowSlowLinks();
const stop = new AbortController();
const hangups = new Set<() => void>();

/** npm passes Ctrl-C on to a process that has heard it from the terminal already: that is one signal, not two. */
const same_signal_ms = 500;
let asked_ms = 0;

for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.on(name, () => {
    // The first asks for a clean end, the second does not wait for it.
    if (!stop.signal.aborted) asked_ms = performance.now();
    else if (performance.now() - asked_ms > same_signal_ms) process.exit(128 + constants.signals[name]);
    stop.abort();
  });
}

/** The reader of the output may exit first: `kit-connector status | head -1`. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

const shell: Shell = {
  env: process.env,
  out: process.stdout,
  err: process.stderr,
  signal: stop.signal,
  ...(process.stdin.isTTY && { ask: terminalAsk(process.stdin, process.stdout, stop.signal) }),
  onHangup: (listener) => {
    if (hangups.size === 0) process.on('SIGHUP', () => hangups.forEach((each) => each()));
    hangups.add(listener);
  },
  onCrash: (listener) => {
    process.on('uncaughtException', (error) => {
      listener(error);
      process.exit(1);
    });
  },
};

// Imported only now, because this loads the libraries that an old Node cannot.
const { runProgram } = await import('./cli/program.ts');
const code = await runProgram(process.argv.slice(2), shell);
if (code === 0 && stop.signal.aborted && process.env['SYSTEMD_EXEC_PID'] === String(process.pid)) {
  // An exit waits until the kernel has closed every file: half a minute for a serial port whose device takes nothing.
  // A signal does not wait, and to systemd this one is a clean end.
  flushCompileCache();
  process.removeAllListeners('SIGTERM');
  process.kill(process.pid, 'SIGTERM');
}
process.exit(code);
