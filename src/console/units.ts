/** Formats quantities, rates, amounts of data and times of day as the settings ask. Number, no-break space, unit. */
import { settings } from './settings.ts';

/** The language of numbers and times. */
export const locale = { now: 'en' };

/** Kept, since making a formatter takes about fifty times as long as using it. By language and form. */
const numbers: Map<string, Intl.NumberFormat> = new Map();
const times: Map<string, Intl.DateTimeFormat> = new Map();

const space = '\u00a0';
/** As wide as a plus, unlike the hyphen. */
const minus = '\u2212';
const m_per_ft = 0.3048;
const m_per_mi = 1_609.344;
const m_per_nmi = 1_852;
const mps_per_kn = 1_852 / 3_600;
const mps_per_mph = 0.447_04;

/**
 * A number in the digits of the page's language.
 * @param digits after the point, at most
 */
export function number(value: number, digits: number = 0): string {
  const key = `${locale.now} ${digits}`;
  const format = numbers.get(key) ?? new Intl.NumberFormat(locale.now, { maximumFractionDigits: digits });
  numbers.set(key, format);
  return format.format(value).replace('-', minus);
}

/** A number and its unit. */
export function quantity(value: number, unit: string, digits: number = 0): string {
  return `${number(value, digits)}${space}${unit}`;
}

export interface Measure {
  readonly value: number;
  readonly unit: string;
  readonly digits: number;
}

/** A height in the unit of the settings. */
export function heightIn(m: number): Measure {
  return settings.units === 'metric'
    ? { value: m, unit: 'm', digits: 0 }
    : { value: m / m_per_ft, unit: 'ft', digits: 0 };
}

/** A distance in the unit of the settings. */
export function distanceIn(m: number): Measure {
  const far = (value: number, unit: string) => ({
    value,
    unit,
    digits: value < 10 ? 1 : 0,
  });
  if (settings.units === 'imperial')
    return m < m_per_mi / 5 ? { value: m / m_per_ft, unit: 'ft', digits: 0 } : far(m / m_per_mi, 'mi');
  if (settings.units === 'nautical' && m >= 1_000) return far(m / m_per_nmi, 'nmi');
  return m < 1_000 ? { value: m, unit: 'm', digits: 0 } : far(m / 1_000, 'km');
}

/**
 * A speed in the unit of the settings.
 * @param mps metres per second
 */
export function speedIn(mps: number): Measure {
  if (settings.units === 'imperial') return { value: mps / mps_per_mph, unit: 'mph', digits: 0 };
  if (settings.units === 'nautical') return { value: mps / mps_per_kn, unit: 'kn', digits: 1 };
  return { value: mps, unit: 'm/s', digits: 1 };
}

export function measureText({ value, unit, digits }: Measure): string {
  return quantity(value, unit, digits);
}

export function distanceText(m: number): string {
  return measureText(distanceIn(m));
}

/** The time of day, with seconds on request; the day too when it is not today's; or only one of both. */
export function clock(
  time_ms: number,
  {
    isExact = false,
    isDay = false,
    isTime = false,
  }: { readonly isExact?: boolean; readonly isDay?: boolean; readonly isTime?: boolean } = {},
): string {
  const date = new Date(time_ms);
  if (Number.isNaN(date.getTime())) return '';
  const day = { day: 'numeric', month: 'short' } as const;
  if (isDay) return timeFormat('day', date, day).format(date);
  const hasDay = !isTime && !isSameDay(date, new Date());
  return timeFormat(`${isExact} ${hasDay}`, date, {
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
    ...(isExact ? { second: '2-digit' } : {}),
    ...(hasDay ? day : {}),
  }).format(date);
}

/** The formatter of this form. The time zone of the device may change while the page is open, hence the offset. */
function timeFormat(form: string, date: Date, options: Intl.DateTimeFormatOptions) {
  const zone = settings.zone === 'utc' ? 'utc' : date.getTimezoneOffset();
  const key = `${locale.now} ${zone} ${form}`;
  const format =
    times.get(key) ??
    new Intl.DateTimeFormat(locale.now, { ...options, ...(zone === 'utc' ? { timeZone: 'UTC' } : {}) });
  times.set(key, format);
  return format;
}

function isSameDay(a: Date, b: Date) {
  if (settings.zone === 'utc') return a.toISOString().slice(0, 10) === b.toISOString().slice(0, 10);
  return a.toDateString() === b.toDateString();
}

/** The name of the zone of all times of day. */
export function zoneName(): string {
  if (settings.zone === 'utc') return 'UTC';
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** @param bps bits per second */
export function rate(bps: number): string {
  if (bps < 1e6) return quantity(bps / 1e3, 'kb/s');
  return quantity(bps / 1e6, 'Mb/s', bps < 1e8 ? 1 : 0);
}

export function size(bytes: number): string {
  if (bytes < 1e3) return quantity(bytes, 'B');
  if (bytes < 1e6) return quantity(bytes / 1e3, 'kB');
  return bytes < 1e9 ? quantity(bytes / 1e6, 'MB', 1) : quantity(bytes / 1e9, 'GB', 1);
}
/** A duration in at most two units, such as "4 s", "12 min", "3 h 05 min", "2 d 4 h". */
export function duration(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s} s`;
  const min = Math.floor(s / 60);
  if (min < 60) return `${min} min`;
  const h = Math.floor(min / 60);
  if (h < 24) return `${h} h ${String(min % 60).padStart(2, '0')} min`;
  return `${Math.floor(h / 24)} d ${h % 24} h`;
}
