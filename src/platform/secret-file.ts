/** Reads files that hold passwords, keys or certificates, and returns what is wrong with one and what to do. */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { readHandle } from './bounded-file.ts';
import { texts } from './texts.ts';

/** The text of the file, or a sentence that names the file, the fault and the remedy. */
export type FileText = { readonly value: string } | { readonly fault: string; readonly cause?: unknown };

export interface SecretFileLimits {
  /** Only the owner and the group may have access; false for certificates. */
  readonly secret: boolean;
  readonly bytes_max: number;
}

/** Permission bits that let every user of the machine read or write. */
const world_bits = 0o006;

/** Reads the file as UTF-8. A wrong guess at a password may lock an account, so invalid bytes are a fault. */
export async function readSecretText(file: string, limits: SecretFileLimits): Promise<FileText> {
  try {
    // Without O_NONBLOCK a named pipe would block a thread until something writes to it.
    await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
    // One handle for the check and for the content: the file cannot be exchanged in between.
    const stats = await handle.stat();
    if (limits.secret && stats.isFile() && (stats.mode & world_bits) !== 0)
      return { fault: texts.world_access(file) };
    return textOf(file, await readHandle(handle, limits.bytes_max));
  } catch (error) {
    return { fault: `${file} ${texts.unreadable(error)}`, cause: error };
  }
}

function textOf(file: string, bytes: Buffer): FileText {
  try {
    const value = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return value.trim() === '' ? { fault: texts.file_empty(file) } : { value };
  } catch (cause) {
    return { fault: texts.not_utf8(file), cause };
  }
}
