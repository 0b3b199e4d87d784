/** What a measurement is and what it yields. */

export interface Figure {
  readonly figure: string;
  /** Null when it could not be measured here; then `skipped` says why. */
  readonly value: number | null;
  readonly unit: string;
  /** What it was measured against in the same run, and how that did. */
  readonly against?: string;
  readonly against_value?: number | null;
  /** What the project promises, for the table. */
  readonly target?: string;
  readonly skipped?: string;
}

export interface BenchContext {
  /** Longer runs and more rounds. */
  readonly long: boolean;
  /** A directory for this bench alone. */
  readonly dir: string;
  /** Tells the person who waits what is going on. */
  readonly say: (sentence: string) => void;
  /** Waits, but not for ever, until the machine has nothing else to do. */
  readonly calm: () => Promise<void>;
}

export interface Bench {
  readonly name: string;
  run(context: BenchContext): Promise<readonly Figure[]>;
}

/** The middle one of several rounds: one disturbed round does not move it. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted[Math.floor(sorted.length / 2)];
  if (middle === undefined) throw new Error('nothing was measured');
  return middle;
}

/** `value / against_value`, so that for rates more and for times less than 1 is better. */
export function ratioOf({ value, against_value }: Figure): number | null {
  return value === null || !against_value ? null : value / against_value;
}
