/** The disk of the other tests here: what a power cut took is gone after the next mount, whoever else runs on this machine. */
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { diskMissing, withExt4 } from '../../support/disk/disks.ts';
import { eventually } from '../../support/eventually.ts';
import { peerMissing, program } from '../../support/peers.ts';

describe.skipIf(diskMissing() || peerMissing('ip', 'sleep'))('the disk of a test', () => {
  it('comes back after a power cut while a lab in a network namespace holds a copy of the mounts', async () => {
    const name = `kc-disk-${process.pid}`;
    const run = async (...args: readonly string[]): Promise<void> => {
      const child = spawn(program('ip'), args, { stdio: 'ignore' });
      await new Promise((resolve) => child.once('exit', resolve));
    };
    await run('netns', 'add', name);
    try {
      await withExt4(16, async (dir, disk) => {
        const file = join(dir, 'file');
        const lab = spawn(program('ip'), ['netns', 'exec', name, program('sleep'), '60'], {
          stdio: 'ignore',
        });
        await eventually('the lab has its copy', () =>
          readFileSync(`/proc/${lab.pid}/cmdline`, 'utf8').includes('sleep\u000060'),
        );
        await eventually('it sleeps', () => readFileSync(`/proc/${lab.pid}/comm`, 'utf8').trim() === 'sleep');
        disk.shutdown();
        expect(() => writeFileSync(file, 'while the power is off')).toThrow(/EIO/u);
        disk.remount();
        writeFileSync(file, 'on again');
        expect(readFileSync(file, 'utf8')).toBe('on again');
        lab.kill('SIGKILL');
      });
    } finally {
      await run('netns', 'delete', name);
    }
  });
});
