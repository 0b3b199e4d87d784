/** The unit as systemd reads it, without a systemd that runs. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { peerMissing, program } from '../support/peers.ts';

const dir = join(import.meta.dirname, '../../systemd');
const unit = join(dir, 'kit-connector.service');
const units = [unit, join(dir, 'kit-connector-service.service')];
const exposure_max = 2.0;

/** Its complaints go to standard error, and a missing program makes it fail. */
async function verify(file: string): Promise<readonly string[]> {
  const { stderr } = await promisify(execFile)(program('systemd-analyze'), ['verify', file]).catch(
    (error: { stderr: string }) => error,
  );
  return stderr.split('\n').filter(Boolean);
}

test('the unit waits neither for a network nor for the time', async () => {
  const text = await readFile(unit, 'utf8');
  const waits = text.split('\n').filter((line) => /^(After|Wants|Requires|BindsTo|Requisite)=/.test(line));
  expect(waits.length).toBeGreaterThan(0);
  expect(waits.join('\n')).not.toMatch(/network|time-/);
});

test.each(units)(
  'the unit %s is not started again and again with a configuration that is wrong',
  async (file) => {
    const text = await readFile(file, 'utf8');
    expect(text).toMatch(/^RestartPreventExitStatus=78$/m);
    // Its exit code does not count for RestartPreventExitStatus=.
    expect(text).not.toMatch(/^ExecStartPre=/m);
  },
);

describe.skipIf(peerMissing('systemd-analyze')).each(units)('the unit %s', (file) => {
  test('has no line that systemd does not understand', async () => {
    // Program and manual page are there only once the package is installed.
    const complaints = (await verify(file)).filter(
      (line) => !/not executable|failed with code 16/.test(line),
    );
    expect(complaints).toEqual([]);
  });

  test(`exposes the machine by ${exposure_max} of 10 at most`, async () => {
    const { stdout } = await promisify(execFile)(program('systemd-analyze'), [
      'security',
      '--offline=true',
      '--no-pager',
      file,
    ]);
    const level = /Overall exposure level for \S+ (\d+\.\d)/.exec(stdout)?.[1];
    expect(Number(level)).toBeGreaterThan(0);
    expect(Number(level)).toBeLessThanOrEqual(exposure_max);
  });
});
