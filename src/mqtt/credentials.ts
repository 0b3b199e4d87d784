/** When the credentials of a connection end: a client certificate, or a token in place of a password. */
import { X509Certificate } from 'node:crypto';
import type { BrokerOptions } from './broker.ts';

export interface Expiry {
  readonly what: 'certificate' | 'token';
  /** Unix time. */
  readonly at_ms: number;
}

/** The first of them to end; undefined: none has an end that is known. */
export function expiryOf({ cert, password }: Pick<BrokerOptions, 'cert' | 'password'>): Expiry | undefined {
  const certificate_ms = cert === undefined ? undefined : Date.parse(new X509Certificate(cert).validTo);
  const token_ms = password === undefined ? undefined : tokenEnd(password);
  if (token_ms !== undefined && token_ms < (certificate_ms ?? Infinity))
    return { what: 'token', at_ms: token_ms };
  return certificate_ms === undefined ? undefined : { what: 'certificate', at_ms: certificate_ms };
}

/** Until when the authorities in a file of them can be used: the last one to end counts, since others are being replaced. */
export function authoritiesEnd(ca: string | undefined): number {
  const blocks = ca?.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/gu) ?? [];
  if (blocks.length === 0) return Infinity;
  return Math.max(...blocks.map((block) => Date.parse(new X509Certificate(block).validTo)));
}

/** `exp` of a JSON Web Token (RFC 7519 section 4.1.4), or `se` of a shared access signature of Azure. */
function tokenEnd(password: string): number | undefined {
  const [, signature] = /^SharedAccessSignature .*\bse=(\d+)/u.exec(password) ?? [];
  if (signature !== undefined) return Number(signature) * 1_000;
  const [, payload] = /^[\w-]+\.([\w-]+)\.[\w-]*$/u.exec(password) ?? [];
  const [, exp] = /"exp"\s*:\s*(\d+)/u.exec(Buffer.from(payload ?? '', 'base64url').toString()) ?? [];
  return exp === undefined ? undefined : Number(exp) * 1_000;
}
