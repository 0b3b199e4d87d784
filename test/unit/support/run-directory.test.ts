/** What runs of the tests that were killed leave behind is removed by the next one. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { rootMissing } from '../../support/peers.ts';
import { removeLeft } from '../../support/run-directory.ts';
import { run, withDirectory } from '../../support/temporary.ts';

/** A run that makes its directory in `base` and stays. */
async function startRun(base: string): Promise<{ readonly child: ChildProcess; readonly dir: string }> {
  const setup = new URL('../../support/run-directory.ts', import.meta.url).href;
  const script = `(await import(${JSON.stringify(setup)})).setup(); console.log(process.env.TMPDIR); setInterval(() => 0, 1e6);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    env: { ...process.env, TMPDIR: base },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [printed] = (await once(child.stdout, 'data')) as [Buffer];
  return { child, dir: printed.toString().trim() };
}

async function killed(child: ChildProcess): Promise<void> {
  const ended = once(child, 'close');
  child.stdout?.resume();
  child.kill('SIGKILL');
  await ended;
}

describe('the directory of a run that was killed', () => {
  it('is removed by the next run, and that of a run beside it stays', async () => {
    await withDirectory(async (base) => {
      const [dead, alive] = [await startRun(base), await startRun(base)];
      writeFileSync(join(dead.dir, 'file'), '');
      await killed(dead.child);
      mkdirSync(join(base, 'kc-other'));
      removeLeft(base);
      expect([dead.dir, alive.dir, join(base, 'kc-other')].map(existsSync)).toEqual([false, true, true]);
      await killed(alive.child);
    });
  });

  it.skipIf(rootMissing())('is removed with the disks that are mounted in it', async () => {
    await withDirectory(async (base) => {
      const { child, dir } = await startRun(base);
      const disk = join(dir, 'disk');
      mkdirSync(disk);
      await run('mount', '-t', 'tmpfs', 'tmpfs', disk);
      await killed(child);
      removeLeft(base);
      expect(existsSync(dir)).toBe(false);
      expect(readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain(disk);
    });
  });
});
