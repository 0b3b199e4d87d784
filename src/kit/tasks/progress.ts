/** Thins the progress of one task: the first word at once, then the newest at most once in a while. */
import { cleanText } from '../../platform/foreign-text.ts';
import { cut } from '../../contract/limits.ts';
import { sleep } from '../../platform/time.ts';
import { progress_every_ms, sentence_chars_max } from './limits.ts';

export interface Progress {
  readonly message: string;
  readonly pct: number | null;
}

/** The function that a handler calls as often as it likes. Silent once `signal` aborts. */
export function pacedProgress(signal: AbortSignal, report: (progress: Progress) => void) {
  let newest: Progress | undefined;
  let busy = false;
  const drain = async (): Promise<void> => {
    while (newest && !signal.aborted) {
      const progress = newest;
      newest = undefined;
      report(progress);
      await sleep(progress_every_ms, signal);
    }
    busy = false;
  };
  return (message: string, pct?: number): void => {
    newest = { message: cut(cleanText(message), sentence_chars_max), pct: percent(pct) };
    if (busy) return;
    busy = true;
    void drain();
  };
}

function percent(pct: number | undefined): number | null {
  return pct === undefined || Number.isNaN(pct) ? null : Math.min(100, Math.max(0, pct));
}
