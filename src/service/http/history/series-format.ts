/** Series as rows, one for each time: for Grafana, and as CSV. */
import type { SeriesList } from '../../api/history-resources.ts';
import { csvLine } from './csv.ts';

/** The mean of each series at each time; null where a series has no value. */
export function seriesRows({
  series,
}: SeriesList): readonly Readonly<Record<string, string | number | null>>[] {
  const times = [...new Set(series.flatMap(({ t }) => t))].sort();
  const bySelect = series.map(
    ({ select, t, mean }) => [select, new Map(t.map((time, index) => [time, mean[index]]))] as const,
  );
  return times.map((time) => {
    const row: Record<string, string | number | null> = { time };
    for (const [select, means] of bySelect) row[select] = means.get(time) ?? null;
    return row;
  });
}

export function seriesCsv(list: SeriesList): string {
  const names = ['time', ...list.series.map(({ select }) => select)];
  const rows = seriesRows(list).map((row) => csvLine(names.map((name) => row[name])));
  return [csvLine(names), ...rows, ''].join('\r\n');
}
