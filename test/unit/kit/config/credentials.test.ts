/** Credentials that systemd passes (`LoadCredential=`, `$CREDENTIALS_DIRECTORY`), and what is said of damaged ones. */
import { execFileSync } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { chdir, cwd } from 'node:process';
import { expect, it } from 'vitest';
import { texts } from '../../../../src/platform/texts.ts';
import { testDirectory } from '../../../support/test-directory.ts';
import { faultsOf, kit_id, readText } from './lab.ts';

const broker = `kit_id: ${kit_id}\nbroker:\n  url: mqtts://broker.example.com\n  username: kit\n`;

/** Reads a configuration whose password `pass` puts into the directory of credentials. */
async function passwordAfter(pass: (file: string, dir: string) => unknown) {
  const dir = await testDirectory();
  const credentials = join(dir, 'credentials');
  await mkdir(credentials);
  await pass(join(credentials, 'mqtt-password'), dir);
  const read = readText(dir, broker, credentials);
  const faults = await faultsOf(dir, read);
  return faults.length > 0 ? faults : (await read).broker?.password;
}

it.each([
  ['as systemd writes it', async (file: string) => writeFile(file, 'secret', { mode: 0o400 })],
  ['without the line end after it', async (file: string) => writeFile(file, 'secret\n', { mode: 0o400 })],
  ['without the line end of Windows', async (file: string) => writeFile(file, 'secret\r\n', { mode: 0o400 })],
  [
    'through a symbolic link',
    async (file: string, dir: string) => {
      await writeFile(join(dir, 'elsewhere'), 'secret', { mode: 0o400 });
      await symlink(join(dir, 'elsewhere'), file);
    },
  ],
])('the password is taken %s', async (_, pass) => {
  expect(await passwordAfter(pass)).toBe('secret');
});

it('a password that was not passed is none', async () => {
  expect(await passwordAfter(() => undefined)).toBeUndefined();
});

const at = (sentence: string): readonly string[] => [
  `config.yaml:2:1 broker.password_file: credentials/mqtt-password ${sentence}`,
];
it.each([
  ['a directory', async (file: string) => mkdir(file), at(texts.no_file)],
  ['a pipe', (file: string) => execFileSync('mkfifo', ['-m', '600', file]), at(texts.no_file)],
  [
    'too large',
    async (file: string) => writeFile(file, 'x'.repeat(100_001), { mode: 0o400 }),
    at(texts.larger_than(100_000)),
  ],
  [
    'a link that leads nowhere',
    async (file: string) => symlink('/nowhere/at/all', file),
    at('cannot be read (no such file or directory); create it or name another file'),
  ],
  [
    'a link to itself',
    async (file: string) => symlink(file, file),
    [
      expect.stringMatching(
        /^config\.yaml:2:1 broker\.password_file: credentials\/mqtt-password cannot be read \(/u,
      ),
    ],
  ],
  [
    'empty',
    async (file: string) => writeFile(file, '', { mode: 0o400 }),
    [`config.yaml:2:1 broker.password_file: ${texts.file_empty('credentials/mqtt-password')}`],
  ],
  [
    'open to all users',
    async (file: string) => writeFile(file, 'secret', { mode: 0o644 }),
    [`config.yaml:2:1 broker.password_file: ${texts.world_access('credentials/mqtt-password')}`],
  ],
  [
    'no text',
    async (file: string) => writeFile(file, Uint8Array.of(0xff, 0x61), { mode: 0o400 }),
    [`config.yaml:2:1 broker.password_file: ${texts.not_utf8('credentials/mqtt-password')}`],
  ],
])('a password that is %s is a fault, and never left out in silence', async (_, pass, faults) => {
  expect(await passwordAfter(pass)).toEqual(faults);
});

it('an empty variable names no directory, and least of all that of the process', async () => {
  const before = cwd();
  const dir = await testDirectory();
  try {
    chdir(dir);
    await writeFile(join(dir, 'mqtt-password'), 'stray', { mode: 0o600 });
    expect((await readText(dir, broker, '')).broker?.password).toBeUndefined();
  } finally {
    chdir(before);
  }
});
