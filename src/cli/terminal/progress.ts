/** Formats the progress of long work as one line: a bar, the percentage and further facts. Pure. */

const bar_columns = 20;

export interface Progress {
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
