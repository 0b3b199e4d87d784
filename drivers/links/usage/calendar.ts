/** Days and billing months of a time zone, as text that sorts: `2026-11-21`. Pure. */
import { day_ms, earliest_plausible_ms, utcDay } from '../../../src/platform/time.ts';

/** Needs none of the tables of time zones and languages, which take 6 MB once the first is asked for. */
export const utc = 'UTC';

/** Returns the day of a time in this IANA zone; null while the clock was not set yet. */
export function calendar(zone: string): (wall_ms: number) => string | null {
  const dayAt = zone === utc ? utcDay : dayIn(zone);
  return (wall_ms) => (wall_ms >= earliest_plausible_ms ? dayAt(wall_ms) : null);
}

function dayIn(zone: string): (wall_ms: number) => string {
  const format = new Intl.DateTimeFormat('en', {
    timeZone: zone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
  });
  return (wall_ms) => {
    const parts = new Map(format.formatToParts(wall_ms).map(({ type, value }) => [type, value]));
    return `${parts.get('year')}-${parts.get('month')}-${parts.get('day')}`;
  };
}

/** The first day of the billing month that `day` is in. `starts_on` is 1 to 31; a shorter month begins on its last day. */
export function monthStart(day: string, starts_on: number): string {
  const [year = 0, month = 0] = day.split('-').map(Number);
  const start = dayOf(year, month - 1, starts_on);
  return start <= day ? start : dayOf(year, month - 2, starts_on);
}

/** `month` counts from 0 and may be -1, the December before. */
function dayOf(year: number, month: number, of_month: number): string {
  const last = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  return utcDay(Date.UTC(year, month, Math.min(of_month, last)));
}

/** The last day of the billing month that `day` is in. */
export function monthEnd(day: string, starts_on: number): string {
  const [year = 0, month = 0] = day.split('-').map(Number);
  const this_month = dayOf(year, month - 1, starts_on);
  const next = this_month > day ? this_month : dayOf(year, month, starts_on);
  return dayAfter(next, -1);
}

/** The day so many days later. */
export function dayAfter(day: string, days = 1): string {
  return utcDay(Date.parse(day) + days * day_ms);
}

/** Whole days from one day to another. */
export function daysBetween(from: string, to: string): number {
  return Math.round((Date.parse(to) - Date.parse(from)) / day_ms);
}
