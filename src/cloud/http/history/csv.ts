/** CSV (RFC 4180) of messages, series and tracks, also as Excel takes it, and series as rows for Grafana. */
import type { SeriesList } from '../../api/history-resources.ts';
import type { Track } from '../../history/reading/track.ts';

/**
 * As Excel opens it by a double click (contao-leads#31, alexcaza/export-to-csv#119): a byte order mark, times without a zone that it
 * takes for times, and where commas are decimal signs semicolons between the cells. A line `sep=` would undo the mark.
 */
export const excel_forms = ['excel_comma', 'excel_semicolon'] as const;
export type CsvForm = 'csv' | 'flat_csv' | (typeof excel_forms)[number];
type Value = string | number | null | undefined;

function isExcel(form: CsvForm): boolean {
  return excel_forms.some((each) => each === form);
}

/** The first line: the time, and the other columns. */
export function csvHead(columns: readonly string[], form: CsvForm): string {
  return isExcel(form)
    ? `\uFEFF${csvLine(['time_utc', ...columns], form)}`
    : csvLine(['time', ...columns], form);
}

export function csvRow(time: string, values: readonly Value[], form: CsvForm): string {
  const local = isExcel(form) ? time.slice(0, 'yyyy-mm-ddThh:mm:ss'.length).replace('T', ' ') : time;
  return csvLine([local, ...values], form);
}

export function csvLine(values: readonly Value[], form: CsvForm = 'csv'): string {
  if (form !== 'excel_semicolon') return values.map(cell).join(',');
  return values
    .map((value) => (typeof value === 'number' ? cell(value).replace('.', ',') : cell(value)))
    .join(';');
}

/**
 * As OWASP advises against formulas: a text that a spreadsheet would run is given an apostrophe. So is the part behind a semicolon,
 * a tab or a line break: where semicolons separate cells, as in the spreadsheets of many languages, quotation marks of cells
 * behind commas do not hold the text together.
 */
function cell(value: Value): string {
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

export function seriesCsv(
  list: SeriesList,
  form: CsvForm = 'csv',
  names: readonly string[] = namesOf(list.series),
): string {
  const rows = seriesRows(list, names).map(({ time, ...row }) =>
    csvRow(
      String(time),
      names.map((name) => row[name]),
      form,
    ),
  );
  return [csvHead(names, form), ...rows, ''].join('\r\n');
}

/** A row for each point; `line` counts the stretches without a gap. */
export function trackCsv({ lines }: Track, form: CsvForm): string {
  const rows = lines.flatMap((line, index) =>
    line.map(({ time_ms, lat, lon, alt_m }) =>
      csvRow(new Date(time_ms).toISOString(), [lat, lon, alt_m, index + 1], form),
    ),
  );
  return [csvHead(['lat', 'lon', 'alt_m', 'line'], form), ...rows, ''].join('\r\n');
}

function namesOf(series: SeriesList['series']): readonly string[] {
  return series.map(({ select }) => select);
}
