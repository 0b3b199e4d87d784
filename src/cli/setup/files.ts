/** Writes the files of setup atomically, secrets readable by their owner only, and keeps what a user wrote. */
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { copyFile, mkdir, open, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { credential_store } from '../doctor/stored-secrets.ts';
import { hasCode, systemReason } from '../../platform/errors.ts';
import { texts } from '../texts.ts';

const secret_mode = 0o600;
const config_mode = 0o640;
/** Copies that are kept of one configuration. */
const copies_max = 100;

/** Paths of the secrets that the configuration names. */
export interface SecretFiles {
  readonly password_file: string | undefined;
  readonly ca_file?: string | undefined;
  readonly cert_file?: string | undefined;
  readonly key_file?: string | undefined;
}

/** Where the secret of this key lies when systemd passes it to the service. */
export function storedFile(key: keyof SecretFiles): string {
  // systemd passes files with this prefix to the service only.
  return join(credential_store, `kit-connector.mqtt-${key.slice(0, -'_file'.length)}`);
}

/** Copies the existing file; returns the name of the copy. An earlier copy is never overwritten. */
export async function keepBefore(file: string): Promise<string> {
  for (let copy = 1; copy <= copies_max; copy += 1) {
    const kept = `${file}.before-setup${copy === 1 ? '' : `-${copy}`}`;
    try {
      await copyFile(file, kept, constants.COPYFILE_EXCL);
      return kept;
    } catch (error) {
      if (!hasCode(error, 'EEXIST')) unwritable(kept)(error);
    }
  }
  throw new Error(texts.too_many_copies(`${file}.before-setup`));
}

/** An existing file keeps its owner, group and mode; a new one has the group of its directory. */
export async function writeConfig(file: string, text: string): Promise<void> {
  const old = await stat(file).catch(() => undefined);
  const group = await stat(dirname(file)).catch(() => undefined);
  await writeWhole(file, text, {
    mode: old ? old.mode & 0o777 : config_mode,
    uid: old?.uid,
    gid: old?.gid ?? group?.gid,
  });
}

export async function writeSecret(file: string, secret: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await writeWhole(file, `${secret}\n`, { mode: secret_mode, uid: undefined, gid: undefined });
}

interface Owner {
  readonly mode: number;
  readonly uid: number | undefined;
  readonly gid: number | undefined;
}

async function writeWhole(file: string, text: string, { mode, uid, gid }: Owner): Promise<void> {
  // What a link leads to, such as a data partition, is the file: a link that is replaced would lose the change with the next image.
  const target = await realpath(file).catch(() => file);
  const next = `${target}.${randomUUID()}`;
  try {
    await using handle = await open(next, 'wx', mode);
    // Only root may change the owner; other users keep the file.
    if (uid !== undefined || gid !== undefined)
      await handle.chown(uid ?? -1, gid ?? -1).catch(() => undefined);
    await handle.chmod(mode);
    await handle.writeFile(text);
    await handle.sync();
    await rename(next, target);
  } finally {
    await rm(next, { force: true });
  }
}

// The error for a file that cannot be written, with its remedy.

const remedies: Readonly<Record<string, string>> = {
  ENOENT: texts.create_or_choose,
  ENOTDIR: texts.choose_another_path,
  EEXIST: texts.choose_another_file,
  EISDIR: texts.name_file_directory,
  EACCES: texts.use_sudo,
  EPERM: texts.use_sudo,
  EROFS: texts.choose_another_path,
  ENOSPC: texts.free_space,
  EDQUOT: texts.free_space,
};

/** For `catch` of what writes `path`: always throws. */
export function unwritable(path: string): (error: unknown) => never {
  return (error) => {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    throw new Error(texts.unwritable(path, systemReason(error), remedies[code] ?? texts.check_disk), {
      cause: error,
    });
  };
}
