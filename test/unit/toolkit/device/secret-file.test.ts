/** Passwords and keys of devices in files of their own. */
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readSecretFile } from '../../../../src/toolkit/device/secret-file.ts';
import { DeviceRejected } from '../../../../src/platform/errors.ts';
import { texts } from '../../../../src/platform/texts.ts';
import { withDirectory } from '../../../support/temporary.ts';

/** Writes the file, reads it as a secret, and returns the secret or the message of the refusal. */
async function read(content: string | Uint8Array, mode = 0o600): Promise<string> {
  return withDirectory(async (dir) => {
    const file = join(dir, 'secret');
    await writeFile(file, content);
    await chmod(file, mode);
    return outcome(file, dir);
  });
}

async function outcome(file: string, dir: string): Promise<string> {
  return readSecretFile('password_file', file).catch((error: unknown) => {
    if (error instanceof DeviceRejected) return error.message.replaceAll(dir, 'DIR');
    throw error;
  });
}

describe('readSecretFile', () => {
  it.each([
    ['as it is', 'pass word', 'pass word'],
    ['without the line end after it', 'secret\n', 'secret'],
    ['without the line end of Windows', 'secret\r\n', 'secret'],
    ['with spaces at its ends, which may belong to it', ' secret ', ' secret '],
    ['with letters of any language', 'pässwörd 密码\n', 'pässwörd 密码'],
    ['of the largest size', 'x'.repeat(1_024), 'x'.repeat(1_024)],
  ])('returns the secret %s', async (_what, content, secret) => {
    expect(await read(content)).toBe(secret);
  });

  it.each([
    ['is empty', '', texts.file_empty('DIR/secret')],
    ['holds a line end only', '\n', texts.file_empty('DIR/secret')],
    ['is too large', 'x'.repeat(1_025), `DIR/secret ${texts.larger_than(1_024)}`],
    [
      'is not UTF-8: a wrong guess at its letters could lock the account',
      Uint8Array.of(0x70, 0xe4, 0x73),
      texts.not_utf8('DIR/secret'),
    ],
  ])('refuses a file that %s', async (_what, content, sentence) => {
    expect(await read(content)).toBe(`password_file: ${sentence}`);
  });

  it.each([0o604, 0o602, 0o646])('refuses a file of mode %o before it reads it', async (mode) => {
    expect(await read('secret', mode)).toBe(`password_file: ${texts.world_access('DIR/secret')}`);
  });

  it('accepts a file that its group may read', async () => {
    expect(await read('secret', 0o640)).toBe('secret');
  });

  it('follows a symbolic link and checks the file behind it', async () => {
    await withDirectory(async (dir) => {
      await writeFile(join(dir, 'open'), 'secret');
      await chmod(join(dir, 'open'), 0o644);
      await symlink('open', join(dir, 'link'));
      expect(await outcome(join(dir, 'link'), dir)).toContain('run "chmod o= DIR/link"');
    });
  });

  it('names the path, the cause and the remedy when there is no file', async () => {
    await withDirectory(async (dir) => {
      expect(await outcome(join(dir, 'none'), dir)).toBe(
        'password_file: DIR/none cannot be read (no such file or directory); create it or name another file',
      );
    });
  });

  it('refuses a directory, and a named pipe without waiting for its writer', async () => {
    await withDirectory(async (dir) => {
      await mkdir(join(dir, 'folder'), { mode: 0o700 });
      execFileSync('/usr/bin/mkfifo', ['-m', '600', join(dir, 'pipe')]);
      for (const name of ['folder', 'pipe']) {
        expect(await outcome(join(dir, name), dir)).toBe(`password_file: DIR/${name} ${texts.no_file}`);
      }
    });
  });
});
