/** Formats published messages as lines that fit the width of a terminal. */
import type { TailLine, TailMessage } from '../../local/api.ts';
import { printable, printableTexts } from '../../platform/foreign-text.ts';
import { type Paint } from './shell.ts';
import { texts } from '../texts.ts';
import { messageFacts } from './message-facts.ts';
import { cut, padTo, widthOf } from './width.ts';
import { localTime } from '../../platform/local-time.ts';

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
