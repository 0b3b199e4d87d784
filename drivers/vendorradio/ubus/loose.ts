/** Reads numbers of firmware that writes them as texts, or leaves them out. */
import { z } from 'zod';

/** A finite number, also written as a text; else null. */
export const figure = z
  .unknown()
  .transform((raw): number | null => {
    if (typeof raw === 'number') return Number.isFinite(raw) ? raw : null;
    if (typeof raw !== 'string' || raw.trim() === '') return null;
    const value = Number(raw);
    return Number.isFinite(value) ? value : null;
  })
  .optional()
  .transform((value) => value ?? null);

/** A whole number that is not negative; else null. */
export const counter = figure.transform((value) =>
  value !== null && Number.isSafeInteger(value) && value >= 0 ? value : null,
);

/** A count of bytes. Firmware before rpcd of mid-2021 writes 32 bits of it, as a signed number (openwrt/luci#5189). */
export const byteCounter = figure.transform((value) => {
  if (value === null || !Number.isSafeInteger(value) || value < -(2 ** 31)) return null;
  return value < 0 ? value + 2 ** 32 : value;
});

export const text = z
  .unknown()
  .transform((raw) => (typeof raw === 'string' && raw.trim() !== '' ? raw.trim().slice(0, 200) : null))
  .optional()
  .transform((value) => value ?? null);

export const macText = z
  .string()
  .regex(/^(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$/u)
  .transform((raw) => raw.toLowerCase());

const rows_max = 1_000;

/** The valid rows; an invalid one is skipped. */
export function goodRows<S extends z.ZodType>(schema: S, rows: unknown): z.output<S>[] {
  if (!Array.isArray(rows)) return [];
  return rows.slice(0, rows_max).flatMap((row: unknown) => {
    const read = schema.safeParse(row);
    return read.success ? [read.data] : [];
  });
}
