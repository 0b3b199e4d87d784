/** Asks a question at the terminal; secret input is not echoed. */
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { texts } from '../texts.ts';

export type Ask = (question: string, how: { readonly hidden: boolean }) => Promise<string>;

/** Rejects when the user cancels (Ctrl-C, Ctrl-D) or `signal` aborts. */
export function terminalAsk(
  input: NodeJS.ReadableStream,
  output: NodeJS.WritableStream,
  signal: AbortSignal,
): Ask {
  return async (question, { hidden }) => {
    // readline redraws the line at each key, so it has to know the question where it echoes.
    if (hidden) output.write(question);
    const echo = new Writable({
      write(chunk: Uint8Array, _encoding, done) {
        if (!hidden) output.write(chunk);
        done();
      },
    });
    const lines = createInterface({ input, output: echo, terminal: true });
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
      if (hidden) output.write('\n');
    }
  };
}
