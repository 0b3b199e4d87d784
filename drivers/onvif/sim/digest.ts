/** HTTP digest as the server side checks it (RFC 7616). */
import { createHash } from 'node:crypto';

export interface DigestRequest {
  readonly authorization: string | undefined;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body: string;
  readonly username: string;
  readonly password: string;
}

export function challengeOf(nonce: string): string {
  return `Digest realm="camera", qop="auth, auth-int", nonce="${nonce}"`;
}

export function isDigest({
  authorization = '',
  method,
  path,
  body,
  username,
  password,
}: DigestRequest): boolean {
  const read = (name: string): string => {
    const [, quoted, plain] =
      new RegExp(`(?<![a-z])${name}=(?:"([^"]*)"|([^",\\s]*))`, 'u').exec(authorization) ?? [];
    return quoted ?? plain ?? '';
  };
  const [, name = 'md5', session] = /^(.*?)(-sess)?$/u.exec(read('algorithm').toLowerCase() || 'md5') ?? [];
  const algorithm = name.replace('sha-', 'sha');
  const hash = (...parts: readonly string[]): string =>
    createHash(algorithm).update(parts.join(':')).digest('hex');
  const user = hash(username, read('realm'), password);
  const known = session === undefined ? user : hash(user, read('nonce'), read('cnonce'));
  const quality = read('qop');
  const what = quality === 'auth-int' ? hash(method, path, hash(body)) : hash(method, path);
  const between = quality === '' ? [] : [read('nc'), read('cnonce'), quality];
  return read('response') === hash(known, read('nonce'), ...between, what);
}
