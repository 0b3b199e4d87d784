/** Prints published messages on a terminal, with the progress of the backlog below them. */
import type { StatusReport, TailLine } from '../../local/api.ts';
import { every } from '../../platform/time.ts';
import { columnsOf, painter, say, type Shell } from './shell.ts';
import { tailText } from './tail-view.ts';
import { drainText } from './drain.ts';
import { LiveLine } from './live-line.ts';
import { TailLines } from './tail-lines.ts';

const look_every_ms = 2_000;

export interface TailScreenOptions {
  /** Whole messages, including command definitions. */
  readonly verbose?: true;
}

export interface TailScreen {
  readonly print: (line: TailLine) => void;
  /** For other output to the same terminal: the log. */
  readonly above: (write: () => void) => void;
  /** Requests the report once for the names of assets, and repeatedly on a terminal for the backlog. */
  readonly follow: (ask: () => Promise<StatusReport>) => Promise<void>;
}

/** Short lines on a terminal; whole ones with `verbose` or without a terminal. */
export function tailScreen(shell: Shell, { verbose }: TailScreenOptions): TailScreen {
  const paint = painter(shell);
  const live = new LiveLine(shell.out);
  const lines = new TailLines(paint);
  const isShort = shell.out.isTTY === true && !verbose;
  const textOf = (line: TailLine): string | undefined =>
    isShort ? lines.line(line, columnsOf(shell.out)) : tailText(line, paint);
  return {
    print(line) {
      const text = textOf(line);
      if (text !== undefined) live.above(() => say(shell, text));
    },
    above: (write) => live.above(write),
    async follow(ask) {
      if (shell.out.isTTY !== true) return;
      const look = async (): Promise<void> => {
        const { assets, outbox } = await ask();
        lines.learn(assets);
        live.show(outbox.drain ? drainText(outbox.drain) : '');
      };
      // If the daemon does not answer, the message stream ends too, or the next request succeeds.
      const tryLook = async (): Promise<void> => look().catch(() => live.show(''));
      every(look_every_ms, shell.signal, () => void tryLook());
      shell.signal.addEventListener('abort', () => live.show(''), { once: true });
      await tryLook();
    },
  };
}
