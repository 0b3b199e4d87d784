/** A finding of the doctor: its subject, its state and a remedy. */
import { cleanText } from '../../platform/foreign-text.ts';

export const levels = ['ok', 'warn', 'fail'] as const;
export type Level = (typeof levels)[number];

export interface Finding {
  readonly level: Level;
  /** The checked subject: `clock`, `driver cameras`. */
  readonly what: string;
  readonly finding: string;
  /** What the technician should do; null when no action is needed. */
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

/** The most severe level; `ok` without findings. */
export function mostSevere(findings: readonly Finding[]): Level {
  return findings.reduce<Level>(
    (worst, { level }) => (levels.indexOf(level) > levels.indexOf(worst) ? level : worst),
    'ok',
  );
}

/** Text of devices and brokers as one printable line. */
export function plain(text: string): string {
  return cleanText(text);
}
