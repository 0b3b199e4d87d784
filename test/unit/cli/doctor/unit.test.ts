/** What systemd and the journal know of the service; the container of test/systemd has the real ones. */
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { texts } from '../../../../src/cli/doctor/texts.ts';
import { checkUnit, unitFiles } from '../../../../src/cli/doctor/unit.ts';
import { localTime } from '../../../../src/platform/local-time.ts';
import { makeDirectory } from '../../../support/temporary.ts';

/** As systemd 252 answers on Debian 12, `journalctl -o json` shortened. */
async function programsIn(dir: string, answers: Readonly<Record<string, string>>): Promise<{ PATH: string }> {
  await mkdir(join(dir, 'bin'));
  for (const [name, script] of Object.entries(answers)) {
    await writeFile(join(dir, 'bin', name), `#!/bin/sh\n${script}\n`);
    await chmod(join(dir, 'bin', name), 0o755);
  }
  return { PATH: `${join(dir, 'bin')}:/usr/bin:/bin` };
}

test('restarts after crashes and errors of the last hour are named with what to read', async () => {
  const dir = await makeDirectory();
  const time = '2026-11-29T10:00:00.000Z';
  const exit = { __REALTIME_TIMESTAMP: `${Date.parse(time)}000`, EXIT_CODE: 'killed', EXIT_STATUS: '9' };
  const env = await programsIn(dir, {
    systemctl: `printf '%s\\n' NRestarts=5 'Environment=NODE_COMPILE_CACHE=/var/cache A_HEADER=Bearer-1 "SITE=zwei \\"Worte" B=2'`,
    journalctl: `case "$*" in *MESSAGE_ID*) echo '${JSON.stringify(exit)}';; *err*) printf 'one\\ndisk \\033[31mgone\\n';; *) echo all of it;; esac`,
  });
  expect(await checkUnit('kit-connector', env)).toEqual([
    {
      level: 'warn',
      what: 'restarts',
      finding: texts.restarted(5, texts.ended_at('killed 9', localTime(time))),
      remedy: texts.see_crash('kit-connector'),
    },
    expect.objectContaining({
      level: 'warn',
      what: 'last errors',
      finding: expect.stringMatching(/^2 errors .*disk .*gone$/u) as unknown,
    }),
  ]);
  expect(await unitFiles('kit-connector', env)).toMatchObject({
    'journal.txt': 'all of it\n',
    'unit.txt': 'NRestarts=5\nEnvironment=NODE_COMPILE_CACHE=*** A_HEADER=*** SITE=*** B=***\n',
  });
});

test('a service that never crashed, and a machine without systemd, have no finding', async () => {
  const dir = await makeDirectory();
  const env = await programsIn(dir, { systemctl: 'echo NRestarts=0', journalctl: 'exit 0' });
  expect(await checkUnit('kit-connector', env)).toEqual([]);
  expect(await checkUnit('kit-connector', { PATH: join(dir, 'none') })).toEqual([]);
  expect(await unitFiles('kit-connector', { PATH: join(dir, 'none') })).toEqual({});
});

test('stored credentials that systemd does not pass are named: the broker would seem to refuse the login', async () => {
  const dir = await makeDirectory();
  const dirs = { stored: join(dir, 'credstore'), passed: join(dir, 'credentials') };
  const env = await programsIn(dir, {
    systemctl: "printf 'NRestarts=0\\nActiveState=active\\n'",
    journalctl: 'exit 0',
  });
  const check = async () => checkUnit('kit-connector', env, dirs);
  await mkdir(dirs.stored);
  await writeFile(join(dirs.stored, 'kit-connector-service.mqtt-password'), 'x');
  expect(await check()).toEqual([]);
  const file = join(dirs.stored, 'kit-connector.mqtt-password');
  await writeFile(file, 'x');
  expect(await check()).toMatchObject([{ level: 'fail', finding: texts.not_passed(file) }]);
  await mkdir(join(dirs.passed, 'kit-connector.service'), { recursive: true });
  expect(await check()).toEqual([]);
});
