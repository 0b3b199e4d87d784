/** CSV (RFC 4180), and series as rows: for Grafana, and as CSV. */
import type { SeriesList } from '../../api/history-resources.ts';

export function csvLine(values: readonly (string | number | null | undefined)[]): string {
  return values.map(cell).join(',');
}

/**
 * As OWASP advises against formulas: a text that a spreadsheet would run is given an apostrophe. So is the part behind a semicolon,
 * a tab or a line break: where semicolons separate cells, as in the spreadsheets of many languages, quotation marks of cells
 * behind commas do not hold the text together.
 */
function cell(value: string | number | null | undefined): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return String(value);
  const parts = value.replaceAll(/([;\t\r\n]["' ]*)(?=[=+\-@＝＋－＠])/gu, "$1'");
  const text = /^ *[=+\-@\t\r\n＝＋－＠]/u.test(parts) ? `'${parts}` : parts;
  return /[",;\t\r\n]/u.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The mean of each series at each time, under its name; null where a series has no value. */
export function seriesRows(
  { series }: SeriesList,
  names: readonly string[] = namesOf(series),
): readonly Readonly<Record<string, string | number | null>>[] {
  const times = [...new Set(series.flatMap(({ t }) => t))].sort();
  const byName = series.map(
    ({ t, mean }, at) => [names[at] ?? '', new Map(t.map((time, index) => [time, mean[index]]))] as const,
  );
  return times.map((time) => {
    const row: Record<string, string | number | null> = { time };
    for (const [name, means] of byName) row[name] = means.get(time) ?? null;
    return row;
  });
}

export function seriesCsv(list: SeriesList, names: readonly string[] = namesOf(list.series)): string {
  const columns = ['time', ...names];
  const rows = seriesRows(list, names).map((row) => csvLine(columns.map((name) => row[name])));
  return [csvLine(columns), ...rows, ''].join('\r\n');
}

function namesOf(series: SeriesList['series']): readonly string[] {
  return series.map(({ select }) => select);
}
