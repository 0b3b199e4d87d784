/** HTTP digest as the server side checks it (RFC 7616, with MD5 or SHA-256). */
import { createHash } from 'node:crypto';

export interface DigestRequest {
  readonly authorization: string | undefined;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly username: string;
  readonly password: string;
}

export function challengeOf(nonce: string): string {
  return `Digest realm="camera", qop="auth, auth-int", nonce="${nonce}"`;
}

export function isDigest({ authorization = '', method, path, username, password }: DigestRequest): boolean {
  const read = (name: string): string => {
    const [, quoted, plain] =
      new RegExp(`(?<![a-z])${name}=(?:"([^"]*)"|([^",\\s]*))`, 'u').exec(authorization) ?? [];
    return quoted ?? plain ?? '';
  };
  const algorithm = /sha-256/iu.test(authorization) ? 'sha256' : 'md5';
  const hash = (...parts: readonly string[]): string =>
    createHash(algorithm).update(parts.join(':')).digest('hex');
  const known = hash(username, read('realm'), password);
  const qop = read('qop') === '' ? [] : [read('nc'), read('cnonce'), 'auth'];
  return read('response') === hash(known, read('nonce'), ...qop, hash(method, path));
}
