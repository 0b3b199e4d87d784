/** Reads passwords and keys of devices from secret files. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { DeviceRejected, messageOf } from '../errors.ts';

/** Larger than any password, community or key. */
const secret_bytes_max = 1_024;
/** Permission bits that let every user of the machine read or write. */
const world_bits = 0o006;

/**
 * Reads the secret, without the line end after it. `key` is the option that names the file. Throws `DeviceRejected` with what to
 * do: only a person can correct it, and a wrong guess at the password may lock an account.
 */
export async function readSecretFile(key: string, file: string): Promise<string> {
  const bytes = await readChecked(key, file);
  if (bytes.length > secret_bytes_max) {
    throw refusal(key, `${file} is larger than ${secret_bytes_max} bytes; name the right file`);
  }
  const secret = textOf(key, file, bytes).replace(/\r?\n$/u, '');
  if (secret === '') throw refusal(key, `${file} is empty; write the secret into it`);
  return secret;
}

/** Uses one handle for the check and for the content, so that the file cannot be exchanged in between. */
async function readChecked(key: string, file: string): Promise<Buffer> {
  try {
    // Without O_NONBLOCK a named pipe would block a thread until something writes to it.
    await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = await handle.stat();
    if (!stats.isFile()) throw refusal(key, `${file} is not a regular file; name the right file`);
    if ((stats.mode & world_bits) !== 0) {
      throw refusal(key, `every user of this machine has access to ${file}; run "chmod o= ${file}"`);
    }
    return await readUpTo(handle, secret_bytes_max + 1);
  } catch (error) {
    if (error instanceof DeviceRejected) throw error;
    throw refusal(key, `${file} cannot be read (${whyOf(error)}`, error);
  }
}

/** The size of a file may change while it is read. */
async function readUpTo(handle: FileHandle, bytes_max: number): Promise<Buffer> {
  const buffer = Buffer.alloc(bytes_max);
  let length = 0;
  while (length < bytes_max) {
    const { bytesRead } = await handle.read(buffer, length, bytes_max - length, null);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return buffer.subarray(0, length);
}

function textOf(key: string, file: string, bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw refusal(key, `${file} is not UTF-8 text; write the secret as UTF-8`, error);
  }
}

/** The cause and, after the parenthesis, the remedy. */
function whyOf(error: unknown): string {
  switch (error instanceof Error && 'code' in error ? error.code : undefined) {
    case 'ENOENT':
    case 'ENOTDIR':
      return 'it does not exist); create it or name another file';
    case 'EACCES':
    case 'EPERM':
      return 'permission denied); make it readable by the group of the user that runs kit-connector';
    default:
      return `${messageOf(error)}); check the disk`;
  }
}

function refusal(key: string, sentence: string, cause?: unknown): DeviceRejected {
  return new DeviceRejected(`${key}: ${sentence}`, { cause });
}
