/** Streams accepted messages to one reader as lines of JSON, without ever waiting for a slow one. */
import type { LocalApi, TailLine } from './api.ts';
import { isMeant } from './find-asset.ts';

/** Text that waits for a slow reader; further lines are skipped and counted. */
const waiting_bytes_max = 1_000_000;

interface Filter {
  /** Id, key or name. */
  readonly asset: string | undefined;
  readonly feed: string | undefined;
}

/** A response that ends when the reader goes or `signal` aborts. */
export function tailStream(
  api: Pick<LocalApi, 'tail'>,
  { asset, feed }: Filter,
  signal: AbortSignal,
): Response {
  const ended = new AbortController();
  const encoder = new TextEncoder();
  const start = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
    let skipped = 0;
    const write = (line: TailLine): void => controller.enqueue(encoder.encode(`${JSON.stringify(line)}\n`));
    // The empty line carries the head of the response to the reader before anything happens.
    controller.enqueue(encoder.encode('\n'));
    const unsubscribe = api.tail((message) => {
      if (asset !== undefined && !isMeant(message.asset, asset)) return;
      if (feed !== undefined && message.feed !== feed) return;
      if ((controller.desiredSize ?? 0) <= 0) {
        skipped += 1;
        return;
      }
      if (skipped > 0) write({ kind: 'skipped', lines: skipped });
      skipped = 0;
      write(message);
    });
    const over = AbortSignal.any([signal, ended.signal]);
    const end = (): void => {
      unsubscribe();
      if (!ended.signal.aborted) controller.close();
    };
    if (over.aborted) end();
    else over.addEventListener('abort', end, { once: true });
  };
  const body = new ReadableStream<Uint8Array>(
    { start, cancel: () => ended.abort() },
    new ByteLengthQueuingStrategy({ highWaterMark: waiting_bytes_max }),
  );
  return new Response(body, { headers: { 'content-type': 'application/x-ndjson' } });
}
