/** A response of many portions, each read when the client has taken the one before. */
import { texts } from '../../texts.ts';

/** A client that takes no portion for so long gives up its place: it would keep it for good by reading now and then. */
export const portion_wait_max_ms = 300_000;

/** `brokenOff` makes the error of the response from that of `portions`. */
export function streamOf(
  portions: AsyncGenerator<string, void, undefined>,
  brokenOff: (error: unknown) => Error,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let timer: NodeJS.Timeout | undefined;
  return new ReadableStream(
    {
      async pull(controller) {
        clearTimeout(timer);
        try {
          const next = await portions.next();
          if (next.done === true) {
            controller.close();
            return;
          }
          controller.enqueue(encoder.encode(next.value));
          timer = setTimeout(() => {
            void portions.return();
            controller.error(brokenOff(new Error(texts.client_stalled(portion_wait_max_ms / 1_000))));
          }, portion_wait_max_ms).unref();
        } catch (error) {
          controller.error(brokenOff(error));
        }
      },
      async cancel() {
        clearTimeout(timer);
        await portions.return();
      },
    },
    { highWaterMark: 1 },
  );
}
