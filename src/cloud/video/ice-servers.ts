/** STUN and TURN servers of viewers, as `Link` headers (RFC 9725, section 4.6), with credentials that are short-lived. */
import { createHmac } from 'node:crypto';

export interface VideoSettings {
  readonly stun: readonly string[];
  readonly turn:
    | { readonly urls: readonly string[]; readonly secret: string; readonly ttl_s: number }
    | undefined;
}

/**
 * `user` is in the log of the TURN server, which can limit what it uses. The password is that of `use-auth-secret` of coturn: who has
 * the secret can make any. It holds for new allocations only: those that exist are not ended (coturn#1204).
 */
export function iceLinks({ stun, turn }: VideoSettings, user: string, now_ms: number): readonly string[] {
  const links = stun.map((url) => `<${url}>; rel="ice-server"`);
  if (!turn) return links;
  const username = `${Math.floor(now_ms / 1_000) + turn.ttl_s}:${user}`;
  const credential = createHmac('sha1', turn.secret).update(username).digest('base64');
  const login = `username="${username}"; credential="${credential}"; credential-type="password"`;
  return [...links, ...turn.urls.map((url) => `<${url}>; rel="ice-server"; ${login}`)];
}
