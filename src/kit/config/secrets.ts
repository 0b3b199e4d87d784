/** Reads the passwords, keys and certificates that the configuration names, and reports what is wrong with them. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { resolve } from 'node:path';
import { messageOf } from '../../platform/errors.ts';
import { readSecretText } from '../../platform/secret-file.ts';
import { utcDay } from '../../platform/time.ts';
import type { KeyPath, Reading } from './source.ts';
import { texts } from './texts.ts';

/** A secret, or the reason why it cannot be read. */
export type Read<T> = { readonly value: T } | { readonly fault: string };

/** Far above any password or chain of certificates. */
const secret_bytes_max = 100_000;
/** The authorities that a system trusts may be named, too: 220 kB in Debian. */
const certificates_bytes_max = 2_000_000;

/** The text of a file; `secret`: only its owner and group may have access. */
export async function readSecret(
  file: string,
  { secret }: { readonly secret: boolean },
): Promise<Read<string>> {
  return readSecretText(file, { secret, bytes_max: secret ? secret_bytes_max : certificates_bytes_max });
}

/** The secret in the file that the key at `at` names. Undefined: it names none, or a fault was added. */
export async function namedSecret(
  file: string | undefined,
  at: KeyPath,
  { dir, faults }: Pick<Reading, 'dir' | 'faults'>,
): Promise<string | undefined> {
  if (file === undefined) return undefined;
  const read = await readSecret(resolve(dir, file), { secret: true });
  if ('value' in read) return read.value;
  faults.add(at, read.fault);
  return undefined;
}

/** The certificates of a PEM text, the first one first. */
export function readCertificates(file: string, pem: string): Read<readonly X509Certificate[]> {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g);
  if (!blocks) return { fault: texts.no_certificate(file) };
  try {
    return { value: blocks.map((block) => new X509Certificate(block)) };
  } catch (error) {
    return { fault: texts.damaged_certificate(file, messageOf(error)) };
  }
}

export function readKey(file: string, pem: string): Read<KeyObject> {
  if (pem.includes('ENCRYPTED')) {
    return {
      fault: texts.key_has_passphrase(file),
    };
  }
  try {
    return { value: createPrivateKey(pem) };
  } catch {
    return { fault: texts.no_key(file) };
  }
}

/**
 * The validity of a certificate by the clock, or undefined. Only ever a warning: a gateway without a battery-backed clock
 * boots in the past, and a kit with an expired certificate must still fill its buffer.
 */
export function validityWarning(
  what: string,
  certificate: X509Certificate,
  now_ms: number,
): string | undefined {
  const from_ms = Date.parse(certificate.validFrom);
  const to_ms = Date.parse(certificate.validTo);
  if (now_ms > to_ms) return texts.expired(what, utcDay(to_ms));
  if (now_ms < from_ms) return texts.not_valid_yet(what, utcDay(from_ms));
  if (to_ms - now_ms < warn_ahead_ms) return texts.expires(what, utcDay(to_ms));
  return undefined;
}
const warn_ahead_ms = 30 * 86_400_000;

/** The text of a file that holds one line, such as a password. */
export function lineOf(text: string): string {
  return text.replace(/\r?\n$/u, '');
}
