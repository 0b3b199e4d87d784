/** Types `setup` as a technician does; answers what came of it. */
import { join } from 'node:path';
import type { Ask } from '../../../src/cli/terminal/ask.ts';
import { runProgram } from '../../../src/cli/program.ts';
import { recordedShell } from './shell-of-test.ts';

/** Types `setup` with a file in `dir`; nobody looks around, and the broker is not tried. */
export async function typed(dir: string, words: readonly string[], ask?: Ask) {
  return typedTrying(dir, ['--no-try', ...words], ask);
}

/** The broker is tried before the configuration is written. */
export async function typedTrying(dir: string, words: readonly string[], ask?: Ask) {
  const shell = { ...recordedShell(), ...(ask && { ask }) };
  const file = join(dir, 'config.yaml');
  const code = await runProgram(['setup', '--config', file, '--scan', '0', ...words], shell);
  return { code, file, stdout: shell.stdout(), stderr: shell.stderr() };
}
