/** Reads the password of a camera from its file. */
import { open } from 'node:fs/promises';
import { DeviceRejected, messageOf } from '../../src/errors.ts';

const password_bytes_max = 1_024;
/** Permission bits that let everybody on the machine read or write. */
const world_bits = 0o006;

/** Throws DeviceRejected with what to do: only a person can put it right. */
export async function readPassword(file: string): Promise<string> {
  const text = await readText(file);
  const password = text.replace(/\r?\n$/u, '');
  if (password === '') throw new DeviceRejected(`password_file ${file} is empty; write the password into it`);
  return password;
}

async function readText(file: string): Promise<string> {
  let refusal: string;
  try {
    await using handle = await open(file);
    const { mode, size } = await handle.stat();
    if ((mode & world_bits) !== 0) {
      refusal = `everybody on this machine has access to it; run "chmod o= ${file}"`;
    } else if (size > password_bytes_max) {
      refusal = 'it is too large for a password; name the right file';
    } else {
      return await handle.readFile('utf8');
    }
  } catch (error) {
    refusal = `it cannot be read (${messageOf(error)}); put it there and start again`;
  }
  throw new DeviceRejected(`password_file ${file}: ${refusal}`);
}
