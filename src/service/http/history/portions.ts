/** A response of many portions, each read when the client has taken the one before. */
import type { ServerResponse } from 'node:http';
import { every } from '../../../platform/time.ts';
import { texts } from '../../texts.ts';

/** A client that takes no portion for so long gives up its place: it would keep it for good by reading now and then. */
export const portion_wait_max_ms = 300_000;

/** Proxies in front cut a response off in which nothing comes for a minute, and a page can take longer: its place has to be free. */
export const quiet_max_ms = 15_000;

/** How often it is asked whether a client may still read, as with WebSockets. */
export const look_every_ms = 5_000;

export interface StreamParts {
  /** Makes the error of the response from that of the portions. */
  readonly brokenOff: (error: unknown) => Error;
  /** Whether the client may still read: it can take hours over what it asked for. Rejects when that is not known. */
  readonly mayRead: () => Promise<boolean>;
  /** Sent while a portion is long in coming; means nothing between two portions. Left out: the format has no such text. */
  readonly filler?: string | undefined;
}

type Controller = ReadableStreamDefaultController<Uint8Array>;

/** The response that these portions make, one after the other; breaks off when its client may no longer read. */
export function streamOf(
  portions: AsyncGenerator<string, void, undefined>,
  { brokenOff, mayRead, filler }: StreamParts,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const over = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let isReading = false;
  const end = (): void => {
    clearTimeout(timer);
    over.abort();
  };
  const breakOff = (controller: Controller, reason: string): void => {
    end();
    void portions.return();
    controller.error(brokenOff(new Error(reason)));
  };
  const look = async (controller: Controller): Promise<void> => {
    const isAllowed = await mayRead().catch(() => true);
    if (!isAllowed && !over.signal.aborted) breakOff(controller, texts.key_ended);
  };
  return new ReadableStream(
    {
      start(controller) {
        every(look_every_ms, over.signal, () => void look(controller));
        if (filler === undefined) return;
        every(quiet_max_ms, over.signal, () => {
          // A client that takes nothing has enough to read.
          if (isReading && (controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(filler));
        });
      },
      async pull(controller) {
        clearTimeout(timer);
        try {
          isReading = true;
          const next = await portions.next();
          isReading = false;
          if (over.signal.aborted) return;
          if (next.done === true) {
            end();
            controller.close();
            return;
          }
          controller.enqueue(encoder.encode(next.value));
          timer = setTimeout(() => {
            breakOff(controller, texts.client_stalled(portion_wait_max_ms / 1_000));
          }, portion_wait_max_ms).unref();
        } catch (error) {
          end();
          controller.error(brokenOff(error));
        }
      },
      async cancel() {
        end();
        await portions.return();
      },
    },
    { highWaterMark: 1 },
  );
}

/**
 * Does the work without the limit for connections on which nothing happens: CSV has nothing that could be sent until a message is found.
 * Who reads nothing of what was found has that limit.
 */
export async function patiently<T>(response: ServerResponse | undefined, work: () => Promise<T>): Promise<T> {
  const socket = response?.socket;
  const idle_ms = socket?.timeout ?? 0;
  socket?.setTimeout(0);
  try {
    return await work();
  } finally {
    socket?.setTimeout(idle_ms);
  }
}
