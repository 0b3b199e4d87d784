/** A terminal that remembers what was written to it. */
import type { Shell } from '../../../src/cli/terminal/shell.ts';

export interface RecordedShell extends Shell {
  readonly stdout: () => string;
  readonly stderr: () => string;
}

export function recordedShell({
  signal = new AbortController().signal,
  env = {},
  isTTY = false,
  onOutput = (_text: string): void => undefined,
} = {}): RecordedShell {
  const written: string[] = [];
  const complained: string[] = [];
  return {
    env,
    signal,
    onHangup: () => undefined,
    onCrash: () => undefined,
    out: {
      isTTY,
      write: (text) => {
        written.push(text);
        onOutput(text);
      },
    },
    err: { isTTY, write: (text) => complained.push(text) },
    stdout: () => written.join(''),
    stderr: () => complained.join(''),
  };
}
