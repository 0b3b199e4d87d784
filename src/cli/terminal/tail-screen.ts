/** Prints published messages on a terminal, with the progress of the backlog below them. */
import type { StatusReport, TailLine, TailMessage } from '../../kit/local/api.ts';
import { every } from '../../platform/time.ts';
import { columnsOf, painter, say, type Shell, type Paint } from './shell.ts';
import { drainText, LiveLine } from './progress.ts';
import { printable, printableTexts } from '../../platform/foreign-text.ts';
import { texts } from '../texts.ts';
import { messageFacts } from './message-facts.ts';
import { cut, padTo, widthOf } from './width.ts';
import { localTime } from '../../platform/local-time.ts';

const look_every_ms = 2_000;

export interface TailScreenOptions {
  /** Whole messages, including command definitions. */
  readonly verbose?: true;
}

interface TailScreen {
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

// Formats published messages as lines that fit the width of a terminal.

const feed_columns = 12;
/** Names of assets are cut to this, or to a quarter of the width. */
const subject_columns_max = 24;
/** Command definitions are long, and the same at each start. */
const verbose_only: ReadonlySet<string> = new Set(['commands']);

interface Named {
  readonly id: string;
  readonly name: string;
}

/** Formats lines; caches the names of assets, since task reports carry only the id. */
export class TailLines {
  readonly #paint: Paint;
  /** Bounded by the number of assets of a kit, present and removed. */
  readonly #names = new Map<string, string>();
  #subject_columns = 0;

  constructor(paint: Paint) {
    this.#paint = paint;
  }

  learn(assets: Iterable<Named>): void {
    for (const { id, name } of assets) this.#names.set(id, name);
  }

  /** `12:30:01  Falcon  gps  lat=52.1 lon=4.3`; undefined for what only `--verbose` shows. */
  line(line: TailLine, columns: number | undefined): string | undefined {
    if (line.kind === 'skipped') return cut(this.#paint('warn', texts.skipped(line.lines)), columns);
    if (verbose_only.has(line.feed)) return undefined;
    if (line.asset) this.learn([line.asset]);
    const { time, feed, data } = line;
    const paint = this.#paint;
    const facts = data === null ? [texts.removed] : messageFacts(feed, printableTexts(data), paint);
    const shown = [
      paint('dim', localTime(time)),
      paint('bold', this.#subject(line, columns)),
      paint('name', padTo(printable(feed), feed_columns)),
      facts.join('  '),
    ];
    return cut(shown.join('  '), columns);
  }

  /** Padded to the longest so far, so that columns are aligned. */
  #subject({ asset, feed, channel, data }: TailMessage, columns = Infinity): string {
    const asset_id = feed === 'task' ? data?.['asset_id'] : undefined;
    const name = asset?.name ?? (typeof asset_id === 'string' ? this.#names.get(asset_id) : undefined);
    const subject = printable(name ?? (feed === 'task' ? texts.task : (channel.split('/')[1] ?? texts.kit)));
    const max = Math.min(subject_columns_max, Math.floor(columns / 4));
    this.#subject_columns = Math.min(max, Math.max(this.#subject_columns, widthOf(subject)));
    return padTo(subject, this.#subject_columns);
  }
}

// A published message as one whole line of text.

/** `12:30:01  Falcon  gps  lat=52.1 lon=4.3`: the whole message, without a limit of width. */
export function tailText(line: TailLine, paint: Paint): string {
  if (line.kind === 'skipped') return paint('warn', texts.skipped(line.lines));
  const facts = line.data === null ? texts.cleared : printable(factsText(line.data));
  return [
    paint('dim', localTime(line.time)),
    paint('bold', subjectOf(line)),
    paint('name', printable(line.feed)),
    facts,
  ].join('  ');
}

function subjectOf({ asset, channel }: TailMessage): string {
  if (asset) return printable(asset.name);
  return printable(channel.split('/')[1] ?? texts.kit);
}

function factsText(data: NonNullable<TailMessage['data']>): string {
  return Object.entries(data)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ');
}
