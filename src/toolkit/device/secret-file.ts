/** Reads passwords and keys of devices from secret files. */
import { DeviceRejected } from '../../platform/errors.ts';
import { readSecretText } from '../../platform/secret-file.ts';

/** Larger than any password, community or key. */
const secret_bytes_max = 1_024;

/**
 * Reads the secret, without the line end after it. `key` is the option that names the file. Throws `DeviceRejected` with what to
 * do: only a person can correct it, and a wrong guess at the password may lock an account.
 */
export async function readSecretFile(key: string, file: string): Promise<string> {
  const read = await readSecretText(file, { secret: true, bytes_max: secret_bytes_max });
  if ('fault' in read) throw new DeviceRejected(`${key}: ${read.fault}`, { cause: read.cause });
  return read.value.replace(/\r?\n$/u, '');
}
