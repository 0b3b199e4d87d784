/** The certificate of the service and the authority of its clients: named by the configuration, read again whenever they may have changed. */
import { resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import { z } from 'zod';
import { messageOf } from '../../platform/errors.ts';
import { readCertificates, readKey, readSecret, validityWarning } from './secrets.ts';
import type { KeyPath, Reading } from './source.ts';
import { texts } from './texts.ts';

const file = z.string().min(1);

export const tlsSection = z.strictObject({
  cert_file: file.describe('PEM; the certificate of the service, and those between it and its authority'),
  key_file: file.describe('PEM; the private key of the certificate, without a passphrase'),
  client_ca_file: file.optional().describe('PEM; the authority that signs the certificates of clients'),
  client_certificates: z
    .enum(['required', 'optional'])
    .optional()
    .describe(
      'with client_ca_file: required (when left out) refuses every connection without a certificate of that authority, browsers too; optional refuses only other certificates. An API key is needed either way',
    ),
});

type ServiceTls = Readonly<ReturnType<typeof tlsOf>>;

/** PEM pems that fit together. */
interface TlsTexts {
  readonly cert: string;
  readonly key: string;
  readonly ca: string | undefined;
}

interface TlsFault {
  readonly key: 'cert_file' | 'key_file' | 'client_ca_file';
  readonly fault: string;
}

type TlsRead =
  | { readonly value: TlsTexts; readonly warnings: readonly string[] }
  | { readonly faults: readonly [TlsFault, ...TlsFault[]] };

/** Absolute paths, and what is asked of clients; undefined: nothing. `dir`: where names of files begin that are not absolute. */
export function tlsOf(section: z.output<typeof tlsSection>, dir: string) {
  const { client_ca_file: ca, client_certificates = 'required' } = section;
  return {
    cert_file: resolve(dir, section.cert_file),
    key_file: resolve(dir, section.key_file),
    client_ca_file: ca === undefined ? undefined : resolve(dir, ca),
    client_certificates: ca === undefined ? undefined : client_certificates,
  };
}

/** Where the service reads its certificates from, also while it runs. */
export function tlsSource(tls: ServiceTls | undefined) {
  return tls && { read: async () => readTls(tls), client_certificates: tls.client_certificates };
}

/** Adds what is wrong with the section and its files, `at` being where it stands, and warns of dates. */
export async function checkTls(
  section: z.output<typeof tlsSection>,
  at: KeyPath,
  { dir, faults, warnings }: Reading,
): Promise<void> {
  if (section.client_certificates !== undefined && section.client_ca_file === undefined) {
    faults.add([...at, 'client_certificates'], texts.no_client_authority);
  }
  const read = await readTls(tlsOf(section, dir));
  if ('faults' in read) for (const { key, fault } of read.faults) faults.add([...at, key], fault);
  else warnings.push(...read.warnings);
}

/** What the files hold now; pems only when all of them are sound and belong together. */
async function readTls(files: ServiceTls): Promise<TlsRead> {
  const faults: TlsFault[] = [];
  const warnings: string[] = [];
  const take = <T>(key: TlsFault['key'], read: { readonly value: T } | { readonly fault: string }) => {
    if ('value' in read) return read.value;
    faults.push({ key, fault: read.fault });
    return undefined;
  };
  const certificates = async (key: 'cert_file' | 'client_ca_file', name: string) => {
    const pem = take(key, await readSecret(name, { secret: false }));
    const list = pem === undefined ? undefined : take(key, readCertificates(name, pem));
    if (pem === undefined || list === undefined) return undefined;
    const found = list.map((each) => validityWarning(texts.certificate_in(name), each, Date.now()));
    warnings.push(...found.filter((each) => each !== undefined));
    return { pem, leaf: list[0] };
  };
  const { cert_file, key_file, client_ca_file } = files;
  const cert = await certificates('cert_file', cert_file);
  const key_pem = take('key_file', await readSecret(key_file, { secret: true }));
  const key = key_pem === undefined ? undefined : take('key_file', readKey(key_file, key_pem));
  const ca = client_ca_file === undefined ? undefined : await certificates('client_ca_file', client_ca_file);
  if (key && cert?.leaf && !cert.leaf.checkPrivateKey(key)) {
    const fault = texts.other_key(key_file);
    faults.push({ key: 'key_file', fault });
  }
  const [first, ...others] = faults;
  if (first) return { faults: [first, ...others] };
  if (!cert || key_pem === undefined) throw new TypeError('a file without a fault has a text');
  const pems: TlsTexts = { cert: cert.pem, key: key_pem, ca: ca?.pem };
  const refused = refusal(pems);
  if (refused === undefined) return { value: pems, warnings };
  const fault = texts.tls_refused(cert_file, refused);
  return { faults: [{ key: 'cert_file', fault }] };
}

/** Faults that only the TLS library finds, such as a key that is too short. */
function refusal(pems: TlsTexts): string | undefined {
  try {
    createSecureContext(pems);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}
