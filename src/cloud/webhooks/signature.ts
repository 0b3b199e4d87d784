/** Signs deliveries (Standard Webhooks, "Signature scheme", symmetric). */
import { createHmac, randomBytes } from 'node:crypto';
import { old_secret_ms } from '../api/webhook-resources.ts';

const prefix = 'whsec_';
/** The specification asks for 24 to 64 bytes. */
const secret_bytes = 32;

export interface Secret {
  /** `whsec_` and base64. */
  readonly text: string;
  /** Null: the current one. */
  readonly expires_ms: number | null;
}

export function makeSecret(): string {
  return prefix + randomBytes(secret_bytes).toString('base64');
}

/** The secrets after a rotation: a new one, and the one before for a while. */
export function rotated(secrets: readonly Secret[], now_ms: number): readonly Secret[] {
  const old = secrets.find(({ expires_ms }) => expires_ms === null);
  const kept = old ? [{ ...old, expires_ms: now_ms + old_secret_ms }] : [];
  return [{ text: makeSecret(), expires_ms: null }, ...kept];
}

interface Signed {
  readonly id: string;
  readonly body: string;
  readonly now_ms: number;
}

/** The headers of a delivery: one signature for each secret that is valid now. */
export function signedHeaders(
  { id, body, now_ms }: Signed,
  secrets: readonly Secret[],
): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(now_ms / 1_000));
  const valid = secrets.filter(({ expires_ms }) => expires_ms === null || expires_ms > now_ms);
  const signatures = valid.map(({ text }) => {
    const key = Buffer.from(text.slice(prefix.length), 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
  });
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  };
}
