/** Series as rows, one for each time: for Grafana, and as CSV. */
import type { SeriesList } from '../../api/history-resources.ts';
import { csvLine } from './csv.ts';

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
