/** A log that keeps its lines in memory. */
import type { DriverLog } from '../../src/toolkit/driver/driver.ts';

interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly facts: Readonly<Record<string, unknown>>;
  readonly sentence: string;
}

export interface RecordingLog extends DriverLog {
  readonly lines: readonly LogLine[];
  /** Sentences at this level. */
  at(level: LogLine['level']): readonly string[];
}

export function recordingLog(): RecordingLog {
  const lines: LogLine[] = [];
  const writer = (level: LogLine['level']) => (facts: object, sentence: string) => {
    lines.push({ level, facts: { ...facts }, sentence });
  };
  return {
    lines,
    at: (level) => lines.filter((line) => line.level === level).map((line) => line.sentence),
    debug: writer('debug'),
    info: writer('info'),
    warn: writer('warn'),
    error: writer('error'),
  };
}
