/** What a check of the doctor finds: one thing, how it is, and what to do about it. */

export const levels = ['ok', 'warn', 'fail'] as const;
export type Level = (typeof levels)[number];

export interface Finding {
  readonly level: Level;
  /** What was looked at: `clock`, `driver cameras`. */
  readonly what: string;
  readonly finding: string;
  /** What the technician should do; null when nothing has to be done. */
  readonly remedy: string | null;
}

export function ok(what: string, finding: string): Finding {
  return { level: 'ok', what, finding, remedy: null };
}

export function warn(what: string, finding: string, remedy: string): Finding {
  return { level: 'warn', what, finding, remedy };
}

export function fail(what: string, finding: string, remedy: string): Finding {
  return { level: 'fail', what, finding, remedy };
}

/** The gravest of all levels; `ok` when there is none. */
export function gravest(findings: readonly Finding[]): Level {
  return findings.reduce<Level>(
    (worst, { level }) => (levels.indexOf(level) > levels.indexOf(worst) ? level : worst),
    'ok',
  );
}

/** One line, control characters of foreign devices and brokers made visible. */
export function plain(text: string): string {
  return text.replaceAll(/\p{Cc}+/gu, ' ').trim();
}
