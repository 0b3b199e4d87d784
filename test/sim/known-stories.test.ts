/** Stories of the simulator that every change must pass. Fresh ones are played by `npm run test:long`. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

it('plays known stories without a violation', async () => {
  const main = join(import.meta.dirname, 'main.ts');
  // Of a failed one the output says how to play it again: the error has it.
  const { stdout } = await promisify(execFile)(process.execPath, [main, '--from', '1000', '--stories', '20']);
  expect(stdout).toContain('clean');
}, 600_000);
