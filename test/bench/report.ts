/** Prints the figures as one table and as one JSON object a line. */
import { ratioOf, type Figure } from './figure.ts';

export interface Measured {
  readonly bench: string;
  readonly figure: Figure;
}

export function jsonLine({ bench, figure: measured }: Measured): string {
  const { figure, value, unit, against = '', against_value = null, skipped } = measured;
  const line = { bench, figure, value, unit, against, against_value, ratio: ratioOf(measured) };
  return `${JSON.stringify(skipped === undefined ? line : { ...line, skipped })}\n`;
}

/** A table for people. */
export function table(all: readonly Measured[]): string {
  const rows = [
    ['bench', 'figure', 'value', 'unit', 'target', 'against', '', 'ratio'],
    ...all.map(({ bench, figure: each }) => [
      bench,
      each.figure,
      each.value === null ? `skipped: ${each.skipped ?? 'not measured'}` : short(each.value),
      each.unit,
      each.target ?? '',
      each.against ?? '',
      short(each.against_value ?? null),
      short(ratioOf(each)),
    ]),
  ];
  const widths = rows.reduce<number[]>(
    (widest, row) => row.map((cell, at) => Math.max(widest[at] ?? 0, cell.length)),
    [],
  );
  const line = (row: readonly string[]): string =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd();
  return `${rows.map(line).join('\n')}\n`;
}

/** Three significant digits, or all digits before the point. */
function short(value: number | null): string {
  if (value === null) return '-';
  return Math.abs(value) >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
}
