/** A progress bar on stderr for work of several steps; prints nothing without a terminal. */
import type { Output } from './shell.ts';
import { LiveLine } from './live-line.ts';
import { progressText } from './progress.ts';

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
