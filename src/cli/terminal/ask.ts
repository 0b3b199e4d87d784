/** Asks a question at the terminal; secret input is not echoed. */
import { createInterface } from 'node:readline/promises';
import { PassThrough, Writable } from 'node:stream';
import { texts } from '../texts.ts';

export type Ask = (question: string, how: { readonly hidden: boolean }) => Promise<string>;

type Input = NodeJS.ReadableStream & { readonly setRawMode?: (isRaw: boolean) => unknown };

/** Rejects when the user cancels (Ctrl-C, Ctrl-D) or `signal` aborts. */
export function terminalAsk(input: Input, output: NodeJS.WritableStream, signal: AbortSignal): Ask {
  const firstLine = firstLineOf(input);
  return async (question, { hidden }) => {
    // readline redraws the line at each key, so it has to know the question where it echoes.
    if (hidden) output.write(question);
    const echo = new Writable({
      write(chunk: Uint8Array, _encoding, done) {
        if (!hidden) output.write(chunk);
        done();
      },
    });
    const { keys, leave } = firstLine();
    const lines = createInterface({ input: keys, output: echo, terminal: true });
    const gaveUp = new AbortController();
    lines.once('SIGINT', () => gaveUp.abort(new Error(texts.cancelled)));
    lines.once('close', () => gaveUp.abort(new Error(texts.cancelled)));
    try {
      return (
        await lines.question(hidden ? '' : question, { signal: AbortSignal.any([signal, gaveUp.signal]) })
      ).trim();
    } catch (error) {
      throw gaveUp.signal.aborted ? gaveUp.signal.reason : error;
    } finally {
      lines.close();
      leave();
      if (hidden) output.write('\n');
    }
  };
}

const [lf, cr] = [0x0a, 0x0d] as const;

/**
 * The keys of each line by itself. Several lines that are pasted answer one question, and none of them is echoed as if it were
 * asked for. A serial console that sends CR and LF sends them one after the other: the LF is no answer to the next question.
 */
function firstLineOf(input: Input) {
  let isAfterReturn = false;
  return () => {
    const keys = Object.assign(new PassThrough(), {
      setRawMode: (isRaw: boolean) => input.setRawMode?.(isRaw),
    });
    let isOver = false;
    const take = (chunk: Uint8Array): void => {
      if (isOver) return;
      const line = isAfterReturn && chunk[0] === lf ? chunk.subarray(1) : chunk;
      isAfterReturn = false;
      const end = line.findIndex((byte) => byte === cr || byte === lf);
      isOver = end >= 0;
      isAfterReturn = isOver && line[end] === cr && end === line.length - 1;
      keys.write(isOver ? line.subarray(0, end + 1) : line);
    };
    const ended = () => keys.end();
    input.on('data', take).once('end', ended).resume();
    return {
      keys,
      leave: (): void => {
        input.off('data', take).off('end', ended);
        input.pause();
      },
    };
  };
}
