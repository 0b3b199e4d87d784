/** The name of an asset's stream on the media server. */
import { createHash } from 'node:crypto';

const readable_chars_max = 40;

/**
 * Stable for the asset, safe in a URL and in the server's configuration (`A-Z a-z 0-9 _ -`), and different for different
 * keys also where the readable part is the same.
 */
export function streamName(asset_key: string): string {
  const readable = asset_key.replace(/[^A-Za-z0-9_-]+/gu, '-').slice(0, readable_chars_max);
  const digest = createHash('sha256').update(asset_key).digest('hex').slice(0, 8);
  return `${readable}-${digest}`;
}
