/** Days and billing months of a time zone, as text that sorts: `2026-11-21`. Pure. */

/** Gateways without a battery-backed clock boot in the past: no time before this release can be right. */
export const earliest_plausible_ms = Date.UTC(2026, 10, 1);

/** Tells the day of a time in this IANA zone; null while the clock was not set yet. */
export function calendar(zone: string): (wall_ms: number) => string | null {
  const format = new Intl.DateTimeFormat('en', {
    timeZone: zone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
  });
  return (wall_ms) => {
    if (!(wall_ms >= earliest_plausible_ms)) return null;
    const parts = new Map(format.formatToParts(wall_ms).map(({ type, value }) => [type, value]));
    return `${parts.get('year')}-${parts.get('month')}-${parts.get('day')}`;
  };
}

/** The first day of the billing month that `day` is in. `starts_on` is 1 to 28. */
export function monthStart(day: string, starts_on: number): string {
  const [year = 0, month = 0, of_month = 0] = day.split('-').map(Number);
  const isBefore = of_month < starts_on;
  const start = new Date(Date.UTC(year, month - 1 - (isBefore ? 1 : 0), starts_on));
  return start.toISOString().slice(0, 10);
}
