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
  { series, bucket_ms }: SeriesList,
  names: readonly string[] = namesOf(series),
): readonly Readonly<Record<string, string | number | null>>[] {
  const known = [...new Set(series.flatMap(({ t }) => t))].sort();
  // Lines break at a null alone, and one is enough for a gap (home-assistant/frontend#14331). A day of 25 hours is none.
  const times = known.flatMap((time, index) => {
    const [here_ms, next_ms] = [Date.parse(time), Date.parse(known[index + 1] ?? time)];
    return next_ms - here_ms < 2 * bucket_ms ? [time] : [time, new Date(here_ms + bucket_ms).toISOString()];
  });
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
