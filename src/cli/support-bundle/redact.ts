/** Removes secrets from exported text: by key names, in addresses, and by the known values. Pure. */
import { withoutSecrets } from '../../platform/log/secrets.ts';

const hidden = '***';
/** Keys whose value is a secret; the name of a file that contains one is not. */
const secret_key = /passw|passphrase|secret|token|authorization|credential|community|api_?key|^psk$|^pin$/iu;
const file_key = /_(?:file|dir)$/iu;
const credentials_in_url = /(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@"']+@/giu;
const password_in_url = /\b[a-z][a-z0-9+.-]*:\/\/[^\s/@:"']*:([^\s/@"']+)@/giu;
/** Shorter secrets would match ordinary words. */
const secret_chars_min = 4;

/** A copy of a parsed file in which the values of secret keys are hidden. */
export function withoutSecretKeys(value: unknown): unknown {
  if (typeof value === 'string') return withoutSecrets(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutSecretKeys);
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      secret_key.test(key) && !file_key.test(key) ? hidden : withoutSecretKeys(inner),
    ]),
  );
}

/** The secrets in a parsed file: values of secret keys, and passwords in addresses. */
export function secretsIn(value: unknown): readonly string[] {
  if (typeof value === 'string')
    return Array.from(value.matchAll(password_in_url), ([, password = '']) => password);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]: [string, unknown]) =>
    typeof inner === 'string' && secret_key.test(key) && !file_key.test(key) ? [inner] : secretsIn(inner),
  );
}

/** Hides every known secret, also escaped as JSON, in an address or in Base64. */
export function scrubber(secrets: readonly string[]): (text: string) => string {
  const forms = secrets.flatMap((secret) => (secret.length < secret_chars_min ? [] : formsOf(secret)));
  const longest_first = [...new Set(forms)].toSorted((a, b) => b.length - a.length);
  return (text) =>
    longest_first
      .reduce((rest, form) => rest.replaceAll(form, hidden), text)
      .replaceAll(credentials_in_url, `$1${hidden}@`);
}

function formsOf(secret: string): readonly string[] {
  const base64 = Buffer.from(secret).toString('base64');
  return [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret), base64];
}
