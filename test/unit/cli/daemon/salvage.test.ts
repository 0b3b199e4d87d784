/** What a person sees while the daemon reads a damaged buffer file. */
import { describe, expect, it } from 'vitest';
import { salvageProgress } from '../../../../src/cli/daemon/daemon.ts';
import { texts } from '../../../../src/cli/texts.ts';

interface Line {
  readonly rows_saved: number;
  readonly rows_expected: number | null;
}

function lab(isTTY: boolean) {
  const written: string[] = [];
  const lines: Line[] = [];
  const statuses: string[] = [];
  const time = { now_ms: 0 };
  const report = salvageProgress({
    out: { write: (text: string) => void written.push(text), isTTY, columns: 120 },
    log: {
      info: (facts: object, sentence: string) => {
        expect(sentence).toBe(texts.salvaging);
        lines.push(facts as Line);
      },
    },
    notifier: { status: (text: string) => void statuses.push(text) },
    now_ms: () => time.now_ms,
  });
  return { report, written, lines, statuses, time };
}

describe('The progress of a salvage', () => {
  it('is a bar on a terminal, which is removed at the end', () => {
    const { report, written, lines } = lab(true);
    report({ rows_saved: 5_000, rows_expected: 20_000, done: false });
    expect(written.at(-1)).toContain(`${texts.salvage}  █████░`);
    expect(written.at(-1)).toContain(texts.salvaged(5_000, 20_000));
    report({ rows_saved: 20_000, rows_expected: 20_000, done: true });
    expect(written.at(-1)).toBe('\r\u001B[K');
    expect(lines).toEqual([]);
  });

  it('is a log line at the beginning and every ten seconds elsewhere', () => {
    const { report, written, lines, time } = lab(false);
    for (let saved = 0; saved <= 60; saved += 1) {
      report({ rows_saved: saved, rows_expected: null, done: saved === 60 });
      time.now_ms += 500;
    }
    expect(lines.map(({ rows_saved }) => rows_saved)).toEqual([0, 20, 40]);
    expect(written).toEqual([]);
  });

  it('is the status that systemd shows until the file is read', () => {
    const { report, statuses } = lab(false);
    report({ rows_saved: 1, rows_expected: null, done: false });
    report({ rows_saved: 9, rows_expected: null, done: true });
    expect(statuses).toEqual([`${texts.salvaging}: ${texts.salvaged(1, null)}`, texts.opening_buffer]);
  });
});
