/** Formats the progress of long work as one line: a bar, the percentage and further facts. Pure. */
import { type Output, duration, columnsOf } from './shell.ts';
import type { StatusReport } from '../../kit/local/api.ts';
import { texts } from '../texts.ts';
import { cut } from './width.ts';

const bar_columns = 20;

interface Progress {
  readonly what: string;
  readonly done: number;
  readonly total: number;
  /** Shown after the bar: `12,340 messages left`. */
  readonly facts?: readonly string[];
}

/** `draining  ██████░░░░  62 %  12,340 messages left` */
export function progressText({ what, done, total, facts = [] }: Progress): string {
  const part = total > 0 ? Math.min(1, Math.max(0, done / total)) : 0;
  const filled = Math.round(part * bar_columns);
  // Full only at the end.
  const percent = `${Math.floor(part * 100)} %`.padStart(5);
  return [what, '█'.repeat(filled) + '░'.repeat(bar_columns - filled), percent, ...facts].join('  ');
}

export interface Steps {
  /** Names the step that begins. */
  readonly next: (name: string) => void;
  /** Removes the bar; also after a failure. */
  readonly end: () => void;
}

export function stepsOn(out: Output, what: string, total: number): Steps {
  const live = new LiveLine(out);
  let done = -1;
  return {
    next(name) {
      done += 1;
      live.show(progressText({ what, done, total, facts: [name] }));
    },
    end: () => live.show(''),
  };
}

type DrainReport = NonNullable<StatusReport['outbox']['drain']>;

/** `draining  ██████░░░░  62 %  12,340 messages left  1,211/s  10s left` */
export function drainText({ from, left, per_s, left_s, waits }: DrainReport): string {
  if (typeof waits === 'string') return texts.waiting(left, waits);
  const facts = [
    texts.messages_left(left),
    texts.per_second(per_s),
    left_s === null ? '' : texts.time_left(duration(left_s)),
  ].filter(Boolean);
  return progressText({ what: texts.draining, done: from - left, total: from, facts });
}

const to_start_and_clear = '\r\u001B[K';

export class LiveLine {
  readonly #out: Output;
  #shown = '';

  constructor(out: Output) {
    this.#out = out;
  }

  /** Replaces the line; an empty text removes it. */
  show(text: string): void {
    if (this.#out.isTTY !== true || text === this.#shown) return;
    this.#out.write(to_start_and_clear + this.#fitting(text));
    this.#shown = text;
  }

  /** Writes lines above it, to any stream of the same terminal. */
  above(write: () => void): void {
    if (this.#shown !== '') this.#out.write(to_start_and_clear);
    write();
    if (this.#shown !== '') this.#out.write(this.#fitting(this.#shown));
  }

  /** The size is read each time: the window may have changed. */
  #fitting(text: string): string {
    return cut(text, columnsOf(this.#out));
  }
}
