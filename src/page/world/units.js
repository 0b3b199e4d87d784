/** Formats quantities and times of day as the settings ask. Number, no-break space, unit. */
import { settings } from './settings.js';

/** The language of numbers and times. */
export const locale = { now: 'en' };

/** Kept, since making a formatter takes about fifty times as long as using it. By language and form. */
/** @type {Map<string, Intl.NumberFormat>} */
const numbers = new Map();
/** @type {Map<string, Intl.DateTimeFormat>} */
const times = new Map();

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
 * @param {number} value
 * @param {number} [digits] after the point, at most
 * @returns {string}
 */
export function number(value, digits = 0) {
  const key = `${locale.now} ${digits}`;
  const format = numbers.get(key) ?? new Intl.NumberFormat(locale.now, { maximumFractionDigits: digits });
  numbers.set(key, format);
  return format.format(value).replace('-', minus);
}

/**
 * A number and its unit.
 * @param {number} value
 * @param {string} unit
 * @param {number} [digits]
 * @returns {string}
 */
export function quantity(value, unit, digits = 0) {
  return `${number(value, digits)}${space}${unit}`;
}

/** @typedef {{ readonly value: number, readonly unit: string, readonly digits: number }} Measure */

/**
 * A height in the unit of the settings.
 * @param {number} m
 * @returns {Measure}
 */
export function heightIn(m) {
  return settings.units === 'metric'
    ? { value: m, unit: 'm', digits: 0 }
    : { value: m / m_per_ft, unit: 'ft', digits: 0 };
}

/**
 * A distance in the unit of the settings.
 * @param {number} m
 * @returns {Measure}
 */
export function distanceIn(m) {
  const far = (/** @type {number} */ value, /** @type {string} */ unit) => ({
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
 * @param {number} mps metres per second
 * @returns {Measure}
 */
export function speedIn(mps) {
  if (settings.units === 'imperial') return { value: mps / mps_per_mph, unit: 'mph', digits: 0 };
  if (settings.units === 'nautical') return { value: mps / mps_per_kn, unit: 'kn', digits: 1 };
  return { value: mps, unit: 'm/s', digits: 1 };
}

/**
 * @param {Measure} measure
 * @returns {string}
 */
export function measureText({ value, unit, digits }) {
  return quantity(value, unit, digits);
}

/**
 * @param {number} m
 * @returns {string}
 */
export function distanceText(m) {
  return measureText(distanceIn(m));
}

/**
 * The time of day, with seconds on request; the day too when it is not today's; or only one of both.
 * @param {number} time_ms
 * @param {{ readonly isExact?: boolean, readonly isDay?: boolean, readonly isTime?: boolean }} [about]
 * @returns {string}
 */
export function clock(time_ms, { isExact = false, isDay = false, isTime = false } = {}) {
  const date = new Date(time_ms);
  if (Number.isNaN(date.getTime())) return '';
  const day = /** @type {const} */ ({ day: 'numeric', month: 'short' });
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

/**
 * The formatter of this form. The time zone of the device may change while the page is open, hence the offset.
 * @param {string} form
 * @param {Date} date
 * @param {Intl.DateTimeFormatOptions} options
 */
function timeFormat(form, date, options) {
  const zone = settings.zone === 'utc' ? 'utc' : date.getTimezoneOffset();
  const key = `${locale.now} ${zone} ${form}`;
  const format =
    times.get(key) ??
    new Intl.DateTimeFormat(locale.now, { ...options, ...(zone === 'utc' ? { timeZone: 'UTC' } : {}) });
  times.set(key, format);
  return format;
}

/**
 * @param {Date} a
 * @param {Date} b
 */
function isSameDay(a, b) {
  if (settings.zone === 'utc') return a.toISOString().slice(0, 10) === b.toISOString().slice(0, 10);
  return a.toDateString() === b.toDateString();
}

/**
 * The name of the zone of all times of day.
 * @returns {string}
 */
export function zoneName() {
  if (settings.zone === 'utc') return 'UTC';
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}
