/** Writes the files of setup atomically, secrets readable by their owner only, and keeps what a user wrote. */
import { randomUUID } from 'node:crypto';
import { copyFile, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { no_broker } from '../../config/broker.ts';
import { parseSource } from '../../config/source.ts';

const secret_mode = 0o600;
const config_mode = 0o640;
const readable = z.object({
  kit_id: z.uuid().optional().catch(undefined),
  broker: z.object({ url: z.string() }).optional().catch(undefined),
});

export interface Before {
  /** Of the existing file, so that the kit keeps its identity. */
  readonly kit_id: string | undefined;
  /** It names a broker or cannot be parsed: a user wrote it. */
  readonly isOwn: boolean;
}

/** Undefined when the file does not exist. */
export async function readBefore(file: string): Promise<Before | undefined> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  try {
    const { kit_id, broker } = readable.parse(parseSource(file, text).value);
    return { kit_id, isOwn: broker?.url !== no_broker };
  } catch {
    return { kit_id: undefined, isOwn: true };
  }
}

/** Copies the existing file; returns the name of the copy. */
export async function keepBefore(file: string): Promise<string> {
  const kept = `${file}.before-setup`;
  await copyFile(file, kept);
  return kept;
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
  const next = `${file}.${randomUUID()}`;
  try {
    await using handle = await open(next, 'wx', mode);
    // Only root may change the owner; other users keep the file.
    if (uid !== undefined || gid !== undefined)
      await handle.chown(uid ?? -1, gid ?? -1).catch(() => undefined);
    await handle.chmod(mode);
    await handle.writeFile(text);
    await handle.sync();
    await rename(next, file);
  } finally {
    await rm(next, { force: true });
  }
}
