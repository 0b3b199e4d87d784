/** What is known of the kit's battery at one moment, and the texts that a source gives turned into it. */

export interface Reading {
  /** 0 to 100; null: unknown or no battery. */
  readonly percent: number | null;
  readonly charging: boolean | null;
  readonly voltage_v: number | null;
  readonly runtime_s: number | null;
  /** The source's own word that the battery is low; false where it has none. */
  readonly says_low: boolean;
  /** The source's own words on how things are: `Discharging`, `OL CHRG`. */
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
  says_low: false,
  state: null,
  reason: null,
  alarm: null,
};

/** A decimal number that stands alone; null for anything else. */
export function numberOf(text: string | null | undefined): number | null {
  const trimmed = text?.trim() ?? '';
  return /^-?\d+(?:\.\d+)?$/u.test(trimmed) ? Number(trimmed) : null;
}

/** Fuel gauges overshoot: 101 % is full. */
export function clampPercent(percent: number): number {
  return Math.round(Math.min(100, Math.max(0, percent)) * 10) / 10;
}
