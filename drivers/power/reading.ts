/** One reading of the kit's battery, and the parsing that its sources share. */

export interface Reading {
  /** 0 to 100; null: unknown or no battery. */
  readonly percent: number | null;
  readonly charging: boolean | null;
  readonly voltage_v: number | null;
  readonly runtime_s: number | null;
  /** The source reports a low battery; false where it reports nothing. */
  readonly reports_low: boolean;
  /** State as the source reports it: `Discharging`, `OL CHRG`. */
  readonly state: string | null;
  /** Why something is unknown, for the technician. */
  readonly reason: string | null;
  readonly alarm: string | null;
}

export const unknown_reading: Reading = {
  percent: null,
  charging: null,
  voltage_v: null,
  runtime_s: null,
  reports_low: false,
  state: null,
  reason: null,
  alarm: null,
};

/**
 * How long the last value is used while the driver of a battery returns an error (ENODATA, EAGAIN, ENODEV), or upsd has no fresh one: some
 * UPSs are stale for a second every few minutes (https://github.com/networkupstools/nut/issues/3576, https://github.com/networkupstools/nut/issues/661).
 */
export const keep_ms = 60_000;

/** Parses a decimal number; null for anything else. */
export function numberOf(text: string | null | undefined): number | null {
  const trimmed = text?.trim() ?? '';
  return /^-?\d+(?:\.\d+)?$/u.test(trimmed) ? Number(trimmed) : null;
}

/** Fuel gauges overshoot a little; what is beyond is no charge but a sentinel, such as 255. */
const percent_max = 110;

/** 0 to 100, in tenths; null: no percentage. */
export function plausiblePercent(percent: number): number | null {
  if (!(percent >= 0 && percent <= percent_max)) return null;
  return Math.round(Math.min(100, percent) * 10) / 10;
}
