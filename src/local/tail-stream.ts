/** Streams accepted messages to one reader as lines of JSON, without ever waiting for a slow one. */
import type { ServerResponse } from 'node:http';
import type { LocalApi, TailLine } from './api.ts';
import type { Answer } from './exchange.ts';
import { isMeant } from './find-asset.ts';

/** Text that waits for a slow reader; further lines are skipped and counted. */
const waiting_bytes_max = 1_000_000;

/** An answer that ends when the reader goes or `signal` aborts. `asset` in the query is an id, a key or a name. */
export function tailStream(api: Pick<LocalApi, 'tail'>, query: URLSearchParams, signal: AbortSignal): Answer {
  const [asset, feed] = [query.get('asset'), query.get('feed')];
  const content = (response: ServerResponse): void => {
    let skipped = 0;
    const write = (line: TailLine): void => void response.write(`${JSON.stringify(line)}\n`);
    // The empty line carries the head of the response to the reader before anything happens.
    response.write('\n');
    const unsubscribe = api.tail((message) => {
      if (asset !== null && !isMeant(message.asset, asset)) return;
      if (feed !== null && message.feed !== feed) return;
      if (response.writableLength >= waiting_bytes_max) {
        skipped += 1;
        return;
      }
      if (skipped > 0) write({ kind: 'skipped', lines: skipped });
      skipped = 0;
      write(message);
    });
    const end = (): void => void response.end();
    signal.addEventListener('abort', end, { once: true });
    response.once('close', () => {
      signal.removeEventListener('abort', end);
      unsubscribe();
    });
    if (signal.aborted) end();
  };
  return { content_type: 'application/x-ndjson', content };
}
