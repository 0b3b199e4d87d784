/** Runs a program of the build machine; its failure ends the build and shows what the program said. */
import { execFile } from 'node:child_process';
import { env } from 'node:process';
import { promisify } from 'node:util';

const execute = promisify(execFile);
const output_bytes_max = 64 * 1024 * 1024;

interface Place {
  readonly cwd?: string;
  /** Beside those of this process. */
  readonly variables?: Readonly<Record<string, string>>;
}

/** Answers what the program printed. Rejects with its error output when it fails, or with how to install it. */
export async function runTool(
  name: string,
  args: readonly string[],
  { cwd, variables }: Place = {},
): Promise<string> {
  try {
    const { stdout } = await execute(name, [...args], {
      cwd,
      env: { ...env, ...variables },
      maxBuffer: output_bytes_max,
    });
    return stdout;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
      throw new Error(`${name} is not installed; systemd/README.md names the Debian packages`, {
        cause: error,
      });
    }
    throw error;
  }
}
