/** Hashes of secrets and of requests, as they are stored: the text itself is not. */
import { createHash } from 'node:crypto';

/** SHA-256, hex. */
export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
